"""What is true of one head, asked in order: claims with evidence, certainty and what to do (`gonio.audit`)."""

from gonio.findings.audit_run import Audit, audit
from gonio.findings.finding import Finding
from gonio.findings.pair import Alike, alike

__all__ = ["Alike", "Audit", "Finding", "alike", "audit"]
