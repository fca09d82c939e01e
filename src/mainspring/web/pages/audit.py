"""The audit log, and whether it and the ledger of slots hold."""

from __future__ import annotations

from typing import Any, TypedDict

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from mainspring.admin.audit_log import AuditEntryView, RecordedOrder
from mainspring.admin.slot_verification.verifier import Report, SlotVerifier
from mainspring.model.access import AccessRole
from mainspring.model.audit_log import AuditFilter
from mainspring.web.auth.policy import Routes
from mainspring.web.pages.background import BackgroundTask, Stage, background_of
from mainspring.web.pages.forms import LARGEST_ID, address, asked, text, whole
from mainspring.web.pages.route import PageRoute
from mainspring.web.rendering import done, page
from mainspring.web.services import AnAdmin, Services, TheServices

routes = Routes("audit_log", PageRoute, include_in_schema=False)
ledger = Routes("ledger", PageRoute, include_in_schema=False)
PAGE = 50
CHAIN, LEDGER = "Chain of the audit log", "Ledger of slots"
FINDINGS = 200


class Filter(TypedDict):
    """What is looked for."""

    action: str | None
    actor: str | None
    object: str | None


@routes.get("/audit", role=AccessRole.ADMIN)
async def audit(request: Request, services: TheServices) -> Response:
    return page(request, "audit.html", **await _values(request, services), **_proofs(request))


@routes.get("/audit/-/log", role=AccessRole.ADMIN)
async def audit_log_part(request: Request, services: TheServices) -> Response:
    return page(request, "parts/audit_log.html", **await _values(request, services))


@routes.get("/audit/-/proofs", role=AccessRole.ADMIN)
async def proofs_part(request: Request) -> Response:
    return page(request, "parts/proofs.html", **_proofs(request))


@routes.post("/audit/-/verify", role=AccessRole.ADMIN, order="audit_log.verify")
async def verify(request: Request, admin: AnAdmin) -> Response:
    """Walk the whole chain."""

    async def work(task: BackgroundTask) -> object:
        return await admin.audit_log.averify()

    async with admin.context.recorded("audit_log.verify"):
        now, author = admin.context.clock.now(), admin.context.actor.name
        background_of(request).start(CHAIN, work, author=author, now=now)
    return done(request, "/audit", "The chain of the audit log is being checked.", kind="info")


@ledger.post("/audit/-/verify-ledger", role=AccessRole.ADMIN, order="ledger.verify")
async def verify_ledger(request: Request, services: TheServices, admin: AnAdmin) -> Response:
    """Compute anew every slot that should have happened, and compare."""
    store, clock, keep = await services.store(), services.clock, services.app.settings.retention.history

    async def work(task: BackgroundTask) -> object:
        return await SlotVerifier(store, clock, keep=keep).verify(told=task.told)

    async with admin.context.recorded("ledger.verify"):
        background_of(request).start(LEDGER, work, author=admin.context.actor.name, now=clock.now())
    return done(request, "/audit", "Every slot is being computed anew.", kind="info")


@ledger.post("/audit/-/proofs/{task_id:int}/cancel", role=AccessRole.ADMIN, order="ledger.cancel")
async def cancel(request: Request, admin: AnAdmin, task_id: int) -> Response:
    async with admin.context.recorded("ledger.cancel", object=task_id):
        stopped = background_of(request).cancel(task_id)
    if stopped:
        return done(request, "/audit", "Stopped.")
    return done(request, "/audit", "It had ended already.", kind="warn")


def _proofs(request: Request) -> dict[str, Any]:
    found = {each.title: each for each in background_of(request).newest()}
    proven = found.get(LEDGER)
    report = proven.answer if proven is not None and isinstance(proven.answer, Report) else None
    findings = [] if report is None else report.findings
    return {
        "running": any(each.stage is Stage.RUNNING for each in found.values()),
        "chain": found.get(CHAIN),
        "ledger": proven,
        "report": report,
        "sentence": "" if report is None else report.sentence(strict=False),
        "wrong": report is not None and bool(report.wrong(strict=False)),
        "findings": findings[:FINDINGS],
        "more": max(0, len(findings) - FINDINGS),
    }


async def _values(request: Request, services: Services) -> dict[str, Any]:
    said = asked(request)
    which: Filter = {
        "action": text(said, "action"),
        "actor": text(said, "actor"),
        "object": text(said, "object"),
    }
    before = whole(said, "before", least=1, most=LARGEST_ID)
    found = await services.questions.audit_log.afind(AuditFilter(**which, before=before, limit=PAGE + 1))
    shown = found[:PAGE]
    older = address("/audit", **which, before=shown[-1].entry.id) if len(found) > PAGE else None
    return {
        "audit_log": [(each, _details(each)) for each in shown],
        "which": which,
        "filtered": any(which.values()),
        "part": address("/audit/-/log", **which, before=before),
        "older": older,
        "newest": address("/audit", **which) if before else None,
    }


def _details(action: RecordedOrder) -> str:
    """What was asked for and what came of it, on one line; nothing where nothing was said."""
    view = AuditEntryView.of(action)
    said = {name: value for name in ("details", "result") if (value := getattr(view, name))}
    return msgspec.json.encode(said).decode() if said else ""
