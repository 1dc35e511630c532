"""Results as tables, frames and figures."""
