"""The services of `conduit.v1`: requests to configurator and registries, results to messages."""
