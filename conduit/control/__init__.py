"""Control: the configurator, the one consumer of all changes to the running configuration."""
