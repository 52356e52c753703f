"""The fit behind the critical batch size."""

from __future__ import annotations

from batchlab.analysis import CriticalBatchFit
from batchlab.report.blocks import Facts, Paragraph, Section, Table
from batchlab.report.findings import Findings
from batchlab.report.words.fit import deviation, fit_facts


def fit_section(findings: Findings, anchor: str) -> Section | None:
    """Return the fit's numbers and how far each batch size lies from it; None where there is no fit."""
    fit = findings.summary.fit
    if fit is None:
        return None
    how = "maximum likelihood, where what was not reached is a lower bound," if fit.censored else "least squares"
    method = f"Steps = S_min + E_min / batch size, by {how} on the logarithm of steps."
    return Section("Fit", (Paragraph(method), Facts(fit_facts(fit)), _residuals(fit)))


def _residuals(fit: CriticalBatchFit) -> Table:
    pairs = zip(fit.batch_sizes, fit.residuals, strict=True)
    return Table(
        name="residuals",
        header=("Batch size", "Residual"),
        rows=[(f"{batch_size:,}", f"{deviation(residual):+.1f} %") for batch_size, residual in pairs],
        numbers=(0, 1),
        caption="Measured steps against fitted ones",
    )
