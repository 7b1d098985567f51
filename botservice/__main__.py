"""`python -m botservice` is the command `botservice`."""

from botservice.cli.main import main

main()
