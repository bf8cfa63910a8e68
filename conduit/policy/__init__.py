"""Policy: rules, selectors, actions, data sources and client ACLs (chapter 30)."""
