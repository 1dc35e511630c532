"""What a shot script must satisfy: rules with stable codes; see :data:`.codes.CODES`."""
