"""A model of the protocol by which turns are taken, run and answered, whose states are enumerated one by one."""
