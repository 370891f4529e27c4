"""`python -m quintain`: the command line where the `quintain` script is not on the path."""

import sys

from quintain.cli import main

sys.exit(main())
