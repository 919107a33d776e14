"""What every test keeps to, checked while the tests run (plugins of pytest)."""
