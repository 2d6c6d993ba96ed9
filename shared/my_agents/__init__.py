"""Your agents: one file each, deployed when AGENTS in template.yaml names it (docs/agents.md)."""
