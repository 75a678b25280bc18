"""A small evaluation as texts and on disk: two recordings, three queries, a run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ECF = """<ecf source_signal_duration="60" language="english" version="1">
<excerpt audio_filename="audio/a.wav" channel="1" tbeg="0" dur="30" source_type="bnews"/>
<excerpt audio_filename="audio/b.wav" channel="1" tbeg="0" dur="30" source_type="cts"/>
</ecf>
"""
RTTM = """SPEAKER a 1 0.00 10.00 <NA> <NA> ann <NA>
LEXEME a 1 1.00 0.50 good lex ann <NA>
LEXEME a 1 1.60 0.40 morning lex ann <NA>
LEXEME a 1 5.00 0.50 night lex ann <NA>
LEXEME b 1 2.00 0.50 Good lex bob <NA>
LEXEME b 1 2.50 0.50 morning lex bob <NA>
"""
QUERIES = """<kwlist ecf_filename="x" language="english" compareNormalize="lowercase" version="1">
<kw kwid="K1"><kwtext>good morning</kwtext></kw>
<kw kwid="K2"><kwtext>night</kwtext></kw>
<kw kwid="K3"><kwtext>noon</kwtext></kw>
</kwlist>
"""
RUN = """<kwslist kwlist_filename="x" language="english" system_id="first">
<detected_kwlist kwid="K1" search_time="1" oov_count="0">
<kw file="a" channel="1" tbeg="1.1" dur="0.8" score="0.9" decision="YES"/>
<kw file="b" channel="1" tbeg="20" dur="0.5" score="0.2" decision="NO"/>
</detected_kwlist>
<detected_kwlist kwid="K2" search_time="1" oov_count="0">
<kw file="a" channel="1" tbeg="5.0" dur="0.5" score="0.7" decision="YES"/>
<kw file="b" channel="1" tbeg="9.0" dur="0.5" score="0.6" decision="YES"/>
</detected_kwlist>
</kwslist>
"""


@dataclass
class Files:
    """The small evaluation on disk: folder/reference/*, folder/first.kwslist.xml."""

    folder: Path

    @property
    def reference(self) -> Path:
        return self.folder / "reference"

    @property
    def run(self) -> Path:
        return self.folder / "first.kwslist.xml"

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path
