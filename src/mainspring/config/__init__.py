"""Settings: typed, frozen, checked when built, each with the place it came from."""

from __future__ import annotations

from mainspring.config.alerts import AlertsConfig, masked_target
from mainspring.config.load import Manager, exposed_secret, load, service_manager, unmanaged, variables
from mainspring.config.settings import (
    CAPTURE_ALL,
    CAPTURE_NONE,
    AccessConfig,
    DatabaseConfig,
    LogConfig,
    MetricsConfig,
    PrivacyConfig,
    ResultsConfig,
    RetentionConfig,
    SchedulerConfig,
    ServerConfig,
    Settings,
    TracesConfig,
    WorkerConfig,
)
from mainspring.config.url import MEMORY, masked_url, normal_url, sqlite_file

__all__ = [
    "CAPTURE_ALL",
    "CAPTURE_NONE",
    "MEMORY",
    "AccessConfig",
    "AlertsConfig",
    "DatabaseConfig",
    "LogConfig",
    "Manager",
    "MetricsConfig",
    "PrivacyConfig",
    "ResultsConfig",
    "RetentionConfig",
    "SchedulerConfig",
    "ServerConfig",
    "Settings",
    "TracesConfig",
    "WorkerConfig",
    "exposed_secret",
    "load",
    "masked_target",
    "masked_url",
    "normal_url",
    "service_manager",
    "sqlite_file",
    "unmanaged",
    "variables",
]
