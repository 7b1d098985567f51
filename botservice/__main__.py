"""`python -m botservice` is the command `botservice`."""

from botservice.cli import main

main()
