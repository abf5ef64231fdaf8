"""The configurations for editors in docs/replay.md, and the extension in examples/vscode."""

import json
import os
import re
import sysconfig
from pathlib import Path

from dap_client import Client
from dap_program import SOURCE, line_of
from recording import record

ROOT = Path(__file__).parents[2]
EXTENSION = ROOT / "examples" / "vscode"


def test_the_extension_starts_the_adapter(tmp_path: Path) -> None:
    manifest = json.loads((EXTENSION / "package.json").read_text())
    [debugger] = manifest["contributes"]["debuggers"]
    program = EXTENSION / debugger["program"]
    assert os.access(program, os.X_OK)
    assert {"name", "publisher", "version", "engines"} <= manifest.keys()
    known = {"database", "run", "at", "stopOnEntry"}
    assert debugger["configurationAttributes"]["launch"]["properties"].keys() == known
    recording = record(tmp_path, SOURCE, "--lines")
    pytrace = Path(sysconfig.get_path("scripts")) / "pytrace"
    command = [debugger["runtime"], str(program)]
    with Client(Path("/"), command=command, PYTRACE=str(pytrace)) as client:
        client.request("initialize", adapterID=debugger["type"])
        # VS Code sends all that launch.json has, and some more
        [configuration] = debugger["initialConfigurations"]
        launch = {**configuration, "database": str(recording.database), "__sessionId": "1"}
        client.request("launch", **launch)
        client.set_lines(recording.script, line_of("added"))
        assert client.configured()["reason"] == "entry"
        assert client.go("continue")["reason"] == "breakpoint"


def test_the_documented_configurations_name_what_there_is() -> None:
    page = (ROOT / "docs" / "replay.md").read_text()
    [launch] = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    [configuration] = json.loads(launch)["configurations"]
    manifest = json.loads((EXTENSION / "package.json").read_text())
    [debugger] = manifest["contributes"]["debuggers"]
    assert configuration == debugger["initialConfigurations"][0]
    [lua] = re.findall(r"```lua\n(.*?)```", page, re.DOTALL)
    assert "args = { 'replay', '--dap' }" in lua
    assert f"database = '{configuration['database']}'" in lua
