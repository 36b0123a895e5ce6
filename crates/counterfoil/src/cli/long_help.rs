//! What the help of a command says beside its options.

pub(super) const VERIFY: &str = "\
Verify the claims of an agent against a repository, without a run.

Extracts the result from the text and validates it against its contract. Then verifies each claim that the contract declares \
against the changes between the base revision and the work tree, and by running checks in the repository.";

pub(super) const MCP: &str = "\
Serve the Model Context Protocol on standard input and output, so that agents can submit results.

An agent submits its result with the tool `submit_result` while it works. An invalid result is returned with all violations. A \
valid result is stored in submissions.jsonl in the state folder and acknowledged. The tools `get_contract` and `check_result` help the \
agent. The server ends when standard input is closed.";

pub(super) const REPLAY: &str = "\
Replay recordings and transcripts, and compare the results with the recorded ones.

Recorded output is parsed and validated as in a run; no agent is called. Each attempt is validated against the current contract \
with the recorded id or, if there is none, against the contract in the recording. A transcript without a recorded outcome is \
new; `--update` records its outcome. Exits with 0 if nothing changed, and with 1 if something changed or could not be replayed.";

pub(super) const DEMO: &str = "\
Run a pack offline: a real run in a new git repository, with scripted agents.

The repository is kept for inspection; its path is printed at the end. `counterfoil demo contracts` shows only extraction and \
validation, on three texts. With --ui, the dashboard shows the run while it works. Exits with 0 if the run ends as the demo expects, else with the exit code of the run.";

pub(super) const NEW: &str = "\
Write the files of a new contract or workflow, with a script to run it at once.

The fields of the contract come from an example of a result (--from-example), from the instructions of a subagent (--from-agent), or are \
a start to edit. No file is overwritten. Everything that is written passes `contract lint` and `workflow check`, and the printed command \
runs it with scripted replies.";

pub(super) const SCHEMA: &str = "\
Print the JSON Schema of a file that people write, or of data that the program prints.

Schemas of data are made from the types of the program, so each version prints its own. They allow further fields, which newer versions may add.

Editors complete and validate files with a schema: in YAML with the comment `# yaml-language-server: $schema=FILE`, in TOML with `#:schema FILE`, each \
in the first line. It finds mistakes in the form of a file; `contract lint` and `workflow check` find the others, too.";

pub(super) const INIT: &str = "\
Set up a project: propose checks, assign contracts to its agents, and install hooks and the MCP server.

Checks are proposed from Cargo.toml, package.json, pyproject.toml, go.mod and the Makefile. An agent that has the name of a built-in contract \
is bound to it only if you say so: at the terminal, or with --bind.

Prints the changes to each file as diffs on standard output. Writes them only after confirmation: with --yes, or at a terminal. \
Exits with 0 if everything is set up, and with 1 if changes are needed and were not confirmed.";

pub(super) const DOCTOR: &str = "\
Check the setup and suggest fixes.

Checks the agent programs (installed, version, login, channels for results, permissions), counterfoil.toml, hooks and contracts. Calls no \
agent and writes nothing. Exits with 0 if everything required works, else with 1.";

pub(super) const HOOK: &str = "\
Validate agent output from Claude Code hooks.

Claude Code runs these commands as hooks, with a payload on standard input; `counterfoil init` installs them. A result that \
violates the contract of the agent is sent back with its violations, at most three times for the same violations and six times in \
total. After that it is let through, and the user is notified.";

pub(super) const SHOW: &str = "\
Examples:
  counterfoil show                            the last run on one screen
  counterfoil show last --trouble             what failed, or was not checked
  counterfoil show last implement --reply     what the agent wrote at the end
  counterfoil show last implement#1 --result  its first result, as JSON
  counterfoil show last implement --diff      what it changed in the files
  counterfoil show last --follow              what happens now";

pub(super) const COMPLETIONS: &str = "\
Examples:
  source <(counterfoil completions bash)              # in ~/.bashrc
  source <(counterfoil completions zsh)               # in ~/.zshrc
  counterfoil completions fish | source               # in config.fish";

pub(super) const CHECK_HELP: &str = "\
Several files: `human` prints the reports and the values one after the other, `json` one object per line with its `file`, `sarif` \
and `junit` one document, `github` all annotations.

A line of a batch is an object with these keys:
  id         anything; the result has the same id
  text       the text to check (required)
  contract   ID or ID@VERSION; default: --contract
  schema     a JSON Schema instead of a contract; default: --schema
  framing, repair, truncated, coerce
             as the options, for the schema of this line
  strict     true: as --strict, for this line
A result is a line with the keys of --format json and the id. A line that is not understood gets \
{\"id\": …, \"status\": \"error\", \"line\": N, \"message\": \"…\"}. A summary is printed to stderr.

Exit codes: 0 all texts are accepted, 1 a text is rejected or has no result, 2 usage error, 3 with --batch: a line was not \
understood, or there was none.

Examples:
  counterfoil check answer.txt --contract review-fix/review-result
  counterfoil check answers/*.txt --contract review-fix/review-result \\
    --format junit
  producer | counterfoil check --batch - --contract review-fix/review-result";

pub(super) const RUN: &str = "\
Run a workflow: a built-in pack, or a file of your own.

The workflow, its contracts and the checks that its claims rely on are checked first; nothing is started if they are wrong. Every step is \
recorded before the next one begins, so a run that was interrupted or killed goes on with `counterfoil resume`. On a terminal, questions \
are asked at once; elsewhere the run ends with exit code 4 and waits for `counterfoil answer`. With --ui, the dashboard shows the run \
while it works, and questions are answered there.";

pub(super) const RUN_HELP: &str = "\
Exit codes: 0 done, 1 failed, 2 usage error or an invalid workflow, 3 a claim failed, 4 waiting for an answer, 5 agent failure, 6 attempts \
or budget exhausted, 7 blocked, 8 a review that requests changes, 9 the state folder was destroyed or altered, 122 no room on the disk, \
124 timeout, 130 stopped or cancelled.

Examples:
  counterfoil run execution-loop --task \"Add a flag --json\" --agent claude
  counterfoil run review-fix --agent codex --agent reviewer=claude --max-cost 5
  counterfoil run flows/fix.yaml --task @task.md --strict-claims \\
    --agent 'command:./agent.sh'
  counterfoil run flows/fix.yaml --task @task.md --agent claude \\
    --format junit > report.xml";

pub(super) const RESUME: &str = "\
Continue a run after an interruption, a crash, an answer or a failure.

Steps that ended are not repeated. An attempt that was interrupted is started again, in the same conversation where the program can \
continue it. A run that failed or was blocked is opened again in the state in which it ended, with the reason of --because.";

pub(super) const RESUME_HELP: &str = "\
Exit codes: as with `counterfoil run`.

Examples:
  counterfoil resume last
  counterfoil resume last --because \"the API is back\" --max-cost 10
  counterfoil resume last --agent implementer=codex";

pub(super) const UI: &str = "\
Open the dashboard of a repository's runs in the browser.

It shows every run while any process drives it, what needs a person, and why something failed. Only this machine can reach it, and \
only the browser that opens the printed link. Stopping it stops no run.";

pub(super) const SERVE: &str = "\
Serve the dashboard and the HTTP API of one or several folders with runs.

The server reads the journals and drives no run. It answers on this machine only, unless --host names another address, which needs \
--token-file. Programs send the token as `Authorization: Bearer TOKEN`; a browser signs in with the printed link, which works once. \
The API describes itself at /api/v1/openapi.json.";
