"""The metric families this build records: name, type, labels, category and help (chapter 50)."""

from __future__ import annotations

from typing import NamedTuple


class Family(NamedTuple):
    """One metric family: `labels` are the keys at full detail, in canonical order."""

    name: str
    kind: str
    labels: tuple[str, ...]
    category: str
    help: str
    #: Upper bounds of a histogram's buckets in seconds; empty for other kinds.
    buckets: tuple[float, ...] = ()


#: Buckets of phase, lookup, cache and response durations (chapter 50 section 2.8).
PHASE_BUCKETS = (0.0001, 0.001, 0.01, 0.05, 0.1, 0.5, 1, 5, 10)
FORWARD_BUCKETS = (0.001, 0.01, 0.05, 0.1, 0.5, 1, 5, 10)


QUERIES = Family(
    "conduit_queries_total",
    "counter",
    ("listener", "protocol", "qtype", "qclass", "ip_family"),
    "volume",
    "Client queries that passed Parse.",
)
RESPONSES = Family(
    "conduit_responses_total",
    "counter",
    ("listener", "protocol", "rcode", "ip_family", "answer_source"),
    "volume",
    "Replies delivered to clients, stored answers and synthesized errors.",
)
RESPONSES_TRUNCATED = Family(
    "conduit_responses_truncated_total",
    "counter",
    ("listener", "protocol", "ip_family", "answer_source"),
    "volume",
    "UDP replies cut to the client's payload size with TC set.",
)
QUERIES_DROPPED = Family(
    "conduit_queries_dropped_total",
    "counter",
    ("listener", "protocol", "reason", "ip_family"),
    "volume",
    "Parsed queries that policy ended without a reply.",
)
ACL_DECISIONS = Family(
    "conduit_acl_decisions_total",
    "counter",
    ("tier", "action", "listener", "ip_family"),
    "volume",
    "Decisions of the client ACLs.",
)
QUERIES_BY_POOL = Family(
    "conduit_queries_by_pool_total",
    "counter",
    ("pool",),
    "volume",
    "Forward attempts that left Route with this pool, retries included.",
)
PARSE_REJECTED = Family(
    "conduit_parse_rejected_total",
    "counter",
    ("reason",),
    "failures",
    "Packets discarded at Parse.",
)
FORWARD_ERRORS = Family(
    "conduit_forward_errors_total",
    "counter",
    ("pool", "backend", "reason"),
    "failures",
    "Forward attempts that ended in an error.",
)
FORWARD_ATTEMPTS = Family(
    "conduit_forward_attempts_total",
    "counter",
    ("pool", "backend", "outcome"),
    "timing",
    "Completed forward attempts.",
)
RETRIES = Family(
    "conduit_retries_total",
    "counter",
    ("pool",),
    "failures",
    "Returns from Response rules to Lookup, by target pool.",
)
PROBE_RESULTS = Family(
    "conduit_probe_results_total",
    "counter",
    ("pool", "backend", "outcome"),
    "health",
    "Finished active probes by outcome.",
)
HEALTH_OBSERVED = Family(
    "conduit_backend_health_observed",
    "gauge",
    ("pool", "backend"),
    "health",
    "Observed health: 0 unknown, 1 up, 2 down.",
)
HEALTH_APPLIED = Family(
    "conduit_backend_health_applied",
    "gauge",
    ("pool", "backend"),
    "health",
    "Health that Route uses: 0 unknown, 1 up, 2 down.",
)
HEALTH_AUTOMATIC = Family(
    "conduit_backend_health_probe_automatic",
    "gauge",
    ("pool", "backend"),
    "health",
    "1 when probes drive the applied state, 0 when frozen.",
)
HEALTH_WEIGHT = Family(
    "conduit_backend_health_effective_weight",
    "gauge",
    ("pool", "backend"),
    "health",
    "Weight of a first attempt, 0 when not eligible.",
)
HEALTH_EWMA = Family(
    "conduit_backend_health_latency_ewma_ms",
    "gauge",
    ("pool", "backend"),
    "health",
    "Moving average of probe round trips in milliseconds.",
)
HEALTH_TRANSITIONS = Family(
    "conduit_backend_health_transitions_total",
    "counter",
    ("pool", "backend"),
    "health",
    "Changes of observed or applied health.",
)
POOL_BACKENDS_ACTIVE = Family(
    "conduit_pool_backends_active",
    "gauge",
    ("pool",),
    "health",
    "Backends applied up, of pools with health enabled.",
)
POOL_BACKENDS_CONFIGURED = Family(
    "conduit_pool_backends_configured",
    "gauge",
    ("pool",),
    "topology",
    "Backends per pool in the active snapshot.",
)
SCRIPT_ERRORS = Family(
    "conduit_script_errors_total",
    "counter",
    ("reason", "script", "table"),
    "failures",
    "Faults of script hooks.",
)
LOOKUP_OUTCOMES = Family(
    "conduit_lookup_provider_outcomes_total",
    "counter",
    ("profile", "provider", "outcome"),
    "lookup",
    "Final outcomes of lookup providers.",
)
CACHE_LOOKUPS = Family(
    "conduit_cache_lookups_total",
    "counter",
    ("cache", "profile", "result"),
    "lookup",
    "Cache reads by result.",
)
CACHE_FILLS = Family(
    "conduit_cache_fills_total",
    "counter",
    ("cache", "profile"),
    "cache_detail",
    "Answers stored into a cache.",
)
CACHE_COALESCED = Family(
    "conduit_cache_singleflight_coalesced_total",
    "counter",
    ("cache", "profile"),
    "cache_detail",
    "Waiting queries answered by the fill of another one.",
)
PHASE_DURATION = Family(
    "conduit_phase_duration_seconds",
    "histogram",
    ("phase",),
    "timing",
    "Time spent in one phase of the pipeline.",
    PHASE_BUCKETS,
)
FORWARD_DURATION = Family(
    "conduit_forward_duration_seconds",
    "histogram",
    ("pool", "backend"),
    "timing",
    "Time of a forward attempt, success or error.",
    FORWARD_BUCKETS,
)
LOOKUP_DURATION = Family(
    "conduit_lookup_duration_seconds",
    "histogram",
    ("profile", "provider"),
    "timing",
    "Time inside one lookup provider attempt.",
    PHASE_BUCKETS,
)
CACHE_LOOKUP_DURATION = Family(
    "conduit_cache_lookup_duration_seconds",
    "histogram",
    ("cache", "profile"),
    "timing",
    "Time of a cache read.",
    PHASE_BUCKETS,
)
RESPONSE_DURATION = Family(
    "conduit_response_duration_seconds",
    "histogram",
    ("answer_source", "listener", "protocol"),
    "timing",
    "Time from the start of a transaction to the end of Send.",
    PHASE_BUCKETS,
)
SLOT_POOL_EXHAUSTED = Family(
    "conduit_slot_pool_exhausted_total",
    "counter",
    (),
    "failures",
    "Transaction slot acquisitions refused because the pool was full.",
)
SLOTS_IN_USE = Family(
    "conduit_slots_in_use", "gauge", (), "runtime", "Transaction slots taken, parked ones included."
)
SLOTS_CAPACITY = Family(
    "conduit_slots_capacity", "gauge", (), "runtime", "Size of the transaction slot pool."
)
FORWARD_OUTSTANDING = Family(
    "conduit_forward_outstanding",
    "gauge",
    ("pool", "backend"),
    "forward_detail",
    "Upstream forwards in flight.",
)
CONFIG_GENERATION = Family(
    "conduit_config_generation", "gauge", (), "meta", "Generation of the active snapshot."
)
BUILD_INFO = Family(
    "conduit_build_info",
    "gauge",
    ("version", "revision", "dirty", "profile"),
    "meta",
    "Constant 1 describing the build.",
)
START_TIME = Family(
    "conduit_start_time_seconds", "gauge", (), "meta", "Process start as a Unix timestamp."
)
UPTIME = Family("conduit_uptime_seconds", "gauge", (), "meta", "Seconds since process start.")

RECORDED: tuple[Family, ...] = (
    QUERIES,
    RESPONSES,
    RESPONSES_TRUNCATED,
    QUERIES_DROPPED,
    ACL_DECISIONS,
    QUERIES_BY_POOL,
    PARSE_REJECTED,
    FORWARD_ERRORS,
    FORWARD_ATTEMPTS,
    RETRIES,
    PROBE_RESULTS,
    SCRIPT_ERRORS,
    LOOKUP_OUTCOMES,
    CACHE_LOOKUPS,
    CACHE_FILLS,
    CACHE_COALESCED,
)
#: Histograms that are recorded on the query path.
TIMED: tuple[Family, ...] = (
    PHASE_DURATION,
    FORWARD_DURATION,
    LOOKUP_DURATION,
    CACHE_LOOKUP_DURATION,
    RESPONSE_DURATION,
)

# topology (chapter 50 section 2.6), read from the snapshot when somebody scrapes
LISTENER_INFO = Family(
    "conduit_listener_info",
    "gauge",
    ("listener", "address", "name", "protocol", "ip_family", "reuse_port"),
    "topology",
    "Constant 1 describing a configured listener.",
)
LISTENER_THREADS = Family(
    "conduit_listener_ingress_threads",
    "gauge",
    ("listener", "protocol"),
    "topology",
    "Ingress threads of a listener.",
)
LISTENER_RCVBUF = Family(
    "conduit_listener_rcvbuf_bytes",
    "gauge",
    ("listener", "protocol"),
    "topology",
    "Receive buffer of a listener, 0 is the system's default.",
)
BACKEND_INFO = Family(
    "conduit_backend_info",
    "gauge",
    ("pool", "backend", "address", "name"),
    "topology",
    "Constant 1 describing a configured backend.",
)
BACKEND_WEIGHT = Family(
    "conduit_backend_weight",
    "gauge",
    ("pool", "backend"),
    "topology",
    "Configured weight after defaults.",
)

# the process (chapter 50 section 2.13)
PROCESS_RESIDENT = Family(
    "conduit_process_resident_bytes", "gauge", (), "process", "Resident memory in bytes."
)
PROCESS_OPEN_FDS = Family(
    "conduit_process_open_fds", "gauge", (), "process", "Open file descriptors."
)
PROCESS_MAX_FDS = Family(
    "conduit_process_max_fds",
    "gauge",
    (),
    "process",
    "Soft limit of open files, 0 when unlimited or unknown.",
)
PROCESS_THREADS = Family(
    "conduit_process_threads", "gauge", (), "process", "Threads of the process."
)
PROCESS_CPU = Family(
    "conduit_process_cpu_seconds_total",
    "counter",
    (),
    "process",
    "User and system time of the process in seconds.",
)

# caches (chapter 50 section 2.6), read when somebody scrapes
CACHE_EVICTIONS = Family(
    "conduit_cache_evictions_total",
    "counter",
    ("cache", "reason"),
    "cache_detail",
    "Entries removed to free capacity.",
)
CACHE_LMDB_ERRORS = Family(
    "conduit_cache_lmdb_errors_total",
    "counter",
    ("cache", "reason"),
    "cache_detail",
    "LMDB errors and capacity pressure.",
)
CACHE_ENTRIES = Family(
    "conduit_cache_entries", "gauge", ("cache",), "cache_detail", "Live entries of a cache."
)
CACHE_ENTRIES_LIMIT = Family(
    "conduit_cache_entries_limit",
    "gauge",
    ("cache",),
    "cache_detail",
    "Configured max_entries, 0 means no limit.",
)
CACHE_BYTES_USED = Family(
    "conduit_cache_bytes_used",
    "gauge",
    ("cache",),
    "cache_detail",
    "Octets that LMDB uses, 0 for memory.",
)
CACHE_BYTES_LIMIT = Family(
    "conduit_cache_bytes_limit",
    "gauge",
    ("cache",),
    "cache_detail",
    "Configured map_size in octets, 0 for memory.",
)
CACHE_LMDB_SHARDS = Family(
    "conduit_cache_lmdb_shards",
    "gauge",
    ("cache",),
    "cache_detail",
    "Open LMDB environments of a cache, 0 for memory.",
)

# event export (chapter 50 section 2.6): shown by its own switch, not by category
EVENTS_ENQUEUED_QUERY = Family(
    "conduit_events_enqueued_query_total",
    "counter",
    ("sink",),
    "event_export",
    "Query frames accepted into the queue of a sink.",
)
EVENTS_ENQUEUED_RESPONSE = Family(
    "conduit_events_enqueued_response_total",
    "counter",
    ("sink",),
    "event_export",
    "Response frames accepted into the queue of a sink.",
)
EVENTS_QUEUE_DROPPED = Family(
    "conduit_events_queue_dropped_total",
    "counter",
    ("sink",),
    "event_export",
    "Frames that the queue of a sink had no room for.",
)
EVENTS_DELIVERED = Family(
    "conduit_events_delivered_total",
    "counter",
    ("sink",),
    "event_export",
    "Frames written, one for each destination that took them.",
)
