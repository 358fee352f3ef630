"""The dashboard beside the manual is one that Grafana reads, by Grafana's published types."""

import json
from pathlib import Path

import pytest
from grafana_foundation_sdk.cog import plugins
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard

OPERATE = Path(__file__).parents[2] / "docs" / "operate"


@pytest.mark.parametrize("name", ["grafana-dashboard.json", "grafana-routers.json"])
def test_grafana_knows_every_member_of_the_dashboard(name):
    """Its published types read the file and write it again: what they do not know would be gone."""
    plugins.register_default_plugins()
    said = json.loads((OPERATE / name).read_text())

    def known(given, written):
        if isinstance(given, dict):
            return all(known(value, written[name]) for name, value in given.items())
        if isinstance(given, list):
            return all(known(*pair) for pair in zip(given, written, strict=True))
        return bool(given == written)

    def written(dashboard):
        return json.loads(json.dumps(Dashboard.from_json(dashboard), cls=JSONEncoder))

    assert known(said, written(said))
    said["panels"][0]["gridPosition"] = said["panels"][0]["gridPos"]
    with pytest.raises(KeyError, match="gridPosition"):
        known(said, written(said))
