"""The pages of a study: an ASGI application over its folder."""
