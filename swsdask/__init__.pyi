"""The public names, each once; `__init__.py` imports what is used, from here."""

from swsdask.api.arguments import Location as Location
from swsdask.api.arguments import Runs as Runs
from swsdask.api.calibrating import apply_calibration as apply_calibration
from swsdask.api.calibrating import calibrate as calibrate
from swsdask.api.comparing import compare as compare
from swsdask.api.comparing import rank_correlation as rank_correlation
from swsdask.api.discovering import discover as discover
from swsdask.api.discovering import plan_discovery as plan_discovery
from swsdask.api.discovery_inputs import Classes as Classes
from swsdask.api.discovery_inputs import ingest_discovery as ingest_discovery
from swsdask.api.ingesting import ingest as ingest
from swsdask.api.integrity import vacuum as vacuum
from swsdask.api.integrity import verify as verify
from swsdask.api.opening import Evaluation as Evaluation
from swsdask.api.opening import open as open  # noqa: A004
from swsdask.api.scoring import Measures as Measures
from swsdask.api.scoring import plan as plan
from swsdask.api.scoring import score as score
from swsdask.api.validating import validate as validate
from swsdask.api.writing import renew_report as renew_report
from swsdask.api.writing import report as report
from swsdask.api.writing import write as write
from swsdask.archive.discovery import StoredDiscovery as StoredDiscovery
from swsdask.archive.protocols import Archive as Archive
from swsdask.archive.store import StoredArchive as StoredArchive
from swsdask.archive.verify import Verified as Verified
from swsdask.calibration.applying import Applied as Applied
from swsdask.calibration.fitting import CalibrationMethod as CalibrationMethod
from swsdask.calibration.maps import Calibration as Calibration
from swsdask.execution.executor import Executor as Executor
from swsdask.execution.executor import Progress as Progress
from swsdask.execution.open import cluster as cluster
from swsdask.formats.in_memory import Judged as Judged
from swsdask.formats.in_memory import Table as Table
from swsdask.formats.validate import Report as Report
from swsdask.measures.averages import Values as Values
from swsdask.measures.measure import Measure as Measure
from swsdask.measures.measure import Scored as Scored
from swsdask.model.comparison import Comparison as Comparison
from swsdask.model.comparison import Failure as Failure
from swsdask.model.comparison import Resampling as Resampling
from swsdask.model.corpus import Definition as Definition
from swsdask.model.errors import ArchiveError as ArchiveError
from swsdask.model.errors import ClusterError as ClusterError
from swsdask.model.errors import ExecutionError as ExecutionError
from swsdask.model.errors import InputError as InputError
from swsdask.model.errors import Problem as Problem
from swsdask.model.errors import SettingsError as SettingsError
from swsdask.model.errors import SwsdaskError as SwsdaskError
from swsdask.model.results import Result as Result
from swsdask.model.settings import EvaluationSettings as EvaluationSettings
from swsdask.model.settings import Settings as Settings
from swsdask.model.trials import Reference as Reference
from swsdask.statistics.statistic import Statistic as Statistic

__version__: str
