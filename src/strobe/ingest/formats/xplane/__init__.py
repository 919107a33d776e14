"""JAX and XLA: XPlane files, and the JSON beside them."""
