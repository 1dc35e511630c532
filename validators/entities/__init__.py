"""What episode scripts must satisfy: rules with stable codes; see :data:`.codes.CODES`."""
