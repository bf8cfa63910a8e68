"""Observation: recording (counters, logging) and export (metrics page).

The recording side (`counters`, `logging`) is floor 1 and imports nothing of the project above
`wire`; the export side (`exposition`, `prometheus_server`) is floor 4.
"""
