"""The proof that nothing is lost: simulated users write, processes are killed, and a checker compares what it saw.

Everything looks at the service from outside, as people and platforms do; `bot` alone is loaded by the service itself.
"""

from botservice.proving.proof import Proof, SimulationPlan, prove, write_table

__all__ = ["Proof", "SimulationPlan", "prove", "write_table"]
