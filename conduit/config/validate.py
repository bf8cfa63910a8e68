"""Validation of a typed configuration: every area in the order of chapter 10 section 7.

Nothing is raised and nothing stops at the first error; all findings go to a report. The same
function judges a file, a reload and a merged configuration.
"""

from __future__ import annotations

from conduit.config.model import Config
from conduit.config.report import Report
from conduit.config.validate_acls import validate_acls
from conduit.config.validate_cache import validate_caches, validate_lookup
from conduit.config.validate_events import validate_events
from conduit.config.validate_logging import validate_logging
from conduit.config.validate_metrics import validate_metrics
from conduit.config.validate_pools import (
    validate_backend_addresses,
    validate_forward,
    validate_health,
    validate_pools,
)
from conduit.config.validate_rules import validate_rules
from conduit.config.validate_scripting import validate_data_sources, validate_rhai
from conduit.config.validate_service import (
    validate_control,
    validate_dataplane,
    validate_listeners,
    validate_orchestrator,
)
from conduit.config.validate_tracing import validate_tracing


def validate(config: Config, report: Report, base_dir: str) -> None:
    """Report every error and warning of `config`; relative paths are taken from `base_dir`.

    Touches the disk only for the preflight of LMDB directories (chapter 40 section 3.4).
    """
    if config.schema_version != 1:
        report.error(
            ("schema_version",),
            f"unsupported schema_version {config.schema_version}, only 1 is supported",
        )
    validate_listeners(config, report)
    validate_dataplane(config, report)
    validate_orchestrator(config, report)
    validate_forward(config, report)
    validate_backend_addresses(config, report)
    validate_health(config, report)
    validate_caches(config, report, base_dir)
    validate_lookup(config, report)
    validate_pools(config, report)
    validate_logging(config, report)
    validate_events(config, report)
    validate_rules(config, report)
    validate_data_sources(config, report)
    validate_rhai(config, report)
    validate_control(config, report)
    validate_metrics(config, report)
    validate_tracing(config, report)
    validate_acls(config, report)
