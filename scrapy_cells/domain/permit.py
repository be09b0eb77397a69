"""A request's right to go out."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scrapy_cells.domain.cohort import Session


class Permit:
    """One token, one bulkhead place and, half-open, the one probe place.

    Only its cell changes it.

    :ivar epoch: of the breaker at admission
    :ivar hold_epoch: of the cell's ``Retry-After`` holds at admission
    :ivar lease_until: epoch seconds; given back then, whatever became of the request
    :ivar bypass: the request did not come through the scheduler
    """

    __slots__ = (
        "admitted_at",
        "bypass",
        "cell",
        "epoch",
        "generation",
        "hold_epoch",
        "holds_place",
        "id",
        "is_probe",
        "key",
        "lease_until",
        "on_wire",
        "received",
        "sent",
        "session",
        "settled",
    )

    def __init__(
        self,
        id: str,  # noqa: A002 - what it is called everywhere else
        cell: str,
        session: Session,
        key: str,
        *,
        epoch: int,
        hold_epoch: int,
        admitted_at: float,
        lease_until: float,
        is_probe: bool,
        bypass: bool,
    ) -> None:
        self.id = id
        self.cell = cell
        self.session = session
        self.key = key
        self.generation = session.generation
        self.epoch = epoch
        self.hold_epoch = hold_epoch
        self.admitted_at = admitted_at
        self.lease_until = lease_until
        self.is_probe = is_probe
        self.bypass = bypass
        self.sent = False
        self.on_wire = False
        self.received = False
        self.holds_place = True
        self.settled = False
