"""The brokers that jobs can publish to, each through its own client."""
