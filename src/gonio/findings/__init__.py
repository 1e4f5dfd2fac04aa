"""What is true of one head, asked in order: claims with evidence, certainty and what to do (`gonio.audit`);
and of one table of embeddings (`gonio.check`)."""

from gonio.findings.audit_run import Audit, audit
from gonio.findings.check_run import Check, check
from gonio.findings.finding import Finding
from gonio.findings.pair import Alike, alike

__all__ = ["Alike", "Audit", "Check", "Finding", "alike", "audit", "check"]
