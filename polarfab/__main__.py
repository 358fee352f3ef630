"""`python -m polarfab` is `polarfab`."""

from polarfab.cli import main

main()
