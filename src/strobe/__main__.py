"""`python -m strobe`: the same as `strobe`."""

import sys

from strobe.cli import main

sys.exit(main())
