"""The answer cache: keys, entries, serving, memory and LMDB stores, single-flight (chapter 40)."""
