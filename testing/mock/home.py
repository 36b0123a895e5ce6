"""A home folder in which the three CLIs talk to the mock and to nobody else."""
import json
import os

# Codex reads where its API is from a file only. Nothing is tried again by the CLIs themselves: that is for whoever runs them.
CODEX = """\
model = "gpt-5.5"
model_provider = "mock"
check_for_update_on_startup = false

[model_providers.mock]
name = "mock"
base_url = "http://127.0.0.1:{port}/v1"
wire_api = "responses"
env_key = "MOCK_API_KEY"
request_max_retries = 0
stream_max_retries = 0

[analytics]
enabled = false

# Without this, each start asks for a repository on the network.
[features]
plugins = false
"""

GEMINI = {
    "security": {"auth": {"selectedType": "gemini-api-key"}},
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
    "general": {"enableAutoUpdate": False, "maxAttempts": 1},
}


def furnish(home, port):
    """Writes the settings of the CLIs into a home, and into its file `env` the variables that go with it; gives these."""
    home = os.path.abspath(home)
    codex, gemini, scratch = (os.path.join(home, name) for name in (".codex", ".gemini", "tmp"))
    for folder in (codex, gemini, scratch):
        os.makedirs(folder, exist_ok=True)
    write(os.path.join(codex, "config.toml"), CODEX.format(port=port))
    write(os.path.join(gemini, "settings.json"), json.dumps(GEMINI, indent=2) + "\n")
    api = f"http://127.0.0.1:{port}"
    variables = {
        "HOME": home, "TMPDIR": scratch, "LANG": "C.UTF-8",
        "ANTHROPIC_BASE_URL": api, "ANTHROPIC_API_KEY": "mock", "CLAUDE_CODE_TMPDIR": scratch, "CLAUDE_CODE_MAX_RETRIES": "0",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1", "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "CODEX_HOME": codex, "MOCK_API_KEY": "mock",
        "GOOGLE_GEMINI_BASE_URL": api, "GEMINI_API_KEY": "mock", "GEMINI_CLI_NO_RELAUNCH": "true",
    }
    write(os.path.join(home, "env"), "".join(f"{name}={value}\n" for name, value in variables.items()))
    return variables


def write(path, text):
    """Writes a file in one step, so that nobody reads half of it."""
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(path + ".new", path)
