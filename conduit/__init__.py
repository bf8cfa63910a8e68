"""DNS Conduit: a policy-driven DNS forwarder in Python."""

__version__ = "0.1.0"
