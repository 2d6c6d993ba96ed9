"""Running an agent: the lease, the steps, the emits, and the hand-over before time runs out."""
