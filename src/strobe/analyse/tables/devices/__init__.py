"""Tables about devices: kernels, launches, copies, idle time."""
