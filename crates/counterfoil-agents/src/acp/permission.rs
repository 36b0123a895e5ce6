//! Answers requests for permissions by the access of the step. Pure.
//!
//! It binds only programs that ask. What a program does without asking is its own affair, or that of the
//! containment.

use super::incoming::{Modes, PermissionOption, ToolCall};
use crate::adapters::Server;
use agent_client_protocol_schema::v1::{PermissionOptionKind, ToolKind};
use counterfoil_flow::Access;
use std::path::{Component, Path, PathBuf};

/// Whether a call is one of our own tools.
pub(super) fn is_ours(call: &ToolCall) -> bool {
    let input = call.raw_input.as_ref();
    let named = input.and_then(|input| Some((input.server.as_deref()?, input.tool.as_deref()?)));
    if let Some((server, tool)) = named {
        return server == Server::NAME && TOOLS.contains(&tool);
    }
    // A command that looks like the name of a tool is a command.
    if !matches!(call.kind, None | Some(ToolKind::Other | ToolKind::Think)) {
        return false;
    }
    [&call.name, &call.title].into_iter().flatten().any(|name| is_our_name(name))
}

const TOOLS: [&str; 2] = [Server::TOOL, Server::RUN_CHECK];

/// Whether this is one of our tools, in one of the forms in which programs name the tools of servers:
/// `mcp__counterfoil__submit_result`, `counterfoil_submit_result`,
/// `submit_result (counterfoil MCP Server)`, …
fn is_our_name(name: &str) -> bool {
    const MAX_NAME_BYTES: usize = 100;
    if name.len() > MAX_NAME_BYTES {
        return false;
    }
    let words = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let name = words.collect::<Vec<_>>().join("_").to_ascii_lowercase();
    let server = Server::NAME;
    TOOLS.iter().any(|tool| {
        [
            format!("mcp_{server}_{tool}"),
            format!("{server}_{tool}"),
            format!("{tool}_{server}"),
            format!("{tool}_{server}_mcp_server"),
            (*tool).to_owned(),
        ]
        .contains(&name)
    })
}

/// Why a call is denied; none if it is allowed.
pub(super) fn denial(call: &ToolCall, access: Access, cwd: &Path) -> Option<&'static str> {
    if is_ours(call) {
        return None;
    }
    let kind = call.kind.unwrap_or_default();
    match (kind, access) {
        (ToolKind::Read | ToolKind::Search | ToolKind::Think, _) => None,
        (
            ToolKind::Edit
            | ToolKind::Delete
            | ToolKind::Move
            | ToolKind::Execute
            | ToolKind::Fetch,
            Access::ReadOnly,
        ) => Some("its access is read-only"),
        (ToolKind::Edit | ToolKind::Delete | ToolKind::Move, Access::WorkspaceWrite) => {
            paths(call).find_map(|path| outside(path, cwd))
        }
        (ToolKind::Execute | ToolKind::Fetch, Access::WorkspaceWrite) => None,
        (ToolKind::SwitchMode, _) => Some("its access does not change"),
        _ => Some("its access does not include this tool"),
    }
}

/// The mode to set, if the program has one that fits the access better than its own: one of the same
/// name, or the one in which it asks. A user's own default may be one in which it does not.
pub(super) fn mode(modes: &Modes, access: Access) -> Option<&str> {
    let same: &[&str] = match access {
        Access::ReadOnly => &["read-only", "read_only", "readonly"],
        Access::WorkspaceWrite => &["workspace-write", "workspace_write"],
    };
    let available = modes.available_modes.as_ref()?;
    let find = |name: &&str| {
        let ids = available.iter().filter_map(|mode| mode.id.as_deref());
        ids.into_iter().find(|id| id == name)
    };
    let mode = same.iter().chain(&["default"]).find_map(find)?;
    (modes.current_mode_id.as_deref() != Some(mode)).then_some(mode)
}

/// The paths of a call.
fn paths(call: &ToolCall) -> impl Iterator<Item = &str> {
    let places = [&call.locations, &call.content].into_iter().flatten().flatten();
    let input = call.raw_input.as_ref().and_then(|input| input.file_path.as_deref());
    places.filter_map(|place| place.path.as_deref()).chain(input)
}

/// Why a path may not be written; none if it may.
fn outside(path: &str, cwd: &Path) -> Option<&'static str> {
    let mut resolved = PathBuf::new();
    for part in cwd.join(path).components() {
        match part {
            Component::ParentDir => {
                resolved.pop();
            }
            Component::CurDir => {}
            part => resolved.push(part),
        }
    }
    match resolved.strip_prefix(cwd) {
        Err(_) => Some("the file is outside of its folder"),
        Ok(inside) if inside.starts_with(".git") => Some("the file belongs to git"),
        Ok(_) => None,
    }
}

/// The id of the option to choose. Permissions are given once: what is remembered may outlive the
/// attempt.
pub(super) fn choose(options: &[PermissionOption], allow: bool) -> Option<&str> {
    use PermissionOptionKind::{AllowAlways, AllowOnce, RejectAlways, RejectOnce};
    let kinds = if allow { [AllowOnce, AllowAlways] } else { [RejectOnce, RejectAlways] };
    kinds.into_iter().find_map(|kind| {
        let option = options.iter().find(|option| option.kind == Some(kind))?;
        option.option_id.as_deref()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn call(value: &serde_json::Value) -> ToolCall {
        serde_json::from_str(&value.to_string()).unwrap()
    }

    #[test]
    fn our_tools_are_known_in_the_forms_of_the_programs() {
        for ours in [
            json!({"title": "submit_result (counterfoil MCP Server)", "kind": "other"}),
            json!({"title": "mcp__counterfoil__submit_result", "kind": "other"}),
            json!({"title": "counterfoil_run_check", "kind": "other"}),
            json!({"title": "counterfoil_submit_result"}),
            json!({"title": "x", "name": "mcp_counterfoil_submit_result"}),
            json!({"title": "mcp.counterfoil.submit_result", "kind": "execute",
                "rawInput": {"server": "counterfoil", "tool": "submit_result", "arguments": {}}}),
        ] {
            assert!(is_ours(&call(&ours)), "{ours}");
            assert_eq!(denial(&call(&ours), Access::ReadOnly, Path::new("/repo")), None);
        }
        for theirs in [
            json!({"title": "submit_result", "kind": "execute"}),
            json!({"title": "submit_result; rm -rf .", "kind": "other"}),
            json!({"title": "submit_result (other MCP Server)"}),
            json!({"title": "mcp__other__submit_result"}),
            json!({"title": "counterfoil_submit_result", "kind": "edit"}),
            json!({"title": "counterfoil_submit_result",
                "rawInput": {"server": "other", "tool": "submit_result"}}),
            json!({"rawInput": {"server": "counterfoil", "tool": "delete_all"}}),
            json!({}),
        ] {
            assert!(!is_ours(&call(&theirs)), "{theirs}");
        }
    }

    #[test]
    fn the_access_decides() {
        let inside = json!([{"path": "/repo/src/a.rs"}]);
        for (kind, read_only, write) in [
            ("read", true, true),
            ("search", true, true),
            ("think", true, true),
            ("edit", false, true),
            ("delete", false, true),
            ("move", false, true),
            ("execute", false, true),
            ("fetch", false, true),
            ("switch_mode", false, false),
            ("other", false, false),
            ("unheard_of", false, false),
        ] {
            let call = call(&json!({"title": "t", "kind": kind, "locations": inside}));
            let is_allowed = |access| denial(&call, access, Path::new("/repo")).is_none();
            assert_eq!(is_allowed(Access::ReadOnly), read_only, "{kind}");
            assert_eq!(is_allowed(Access::WorkspaceWrite), write, "{kind}");
        }
    }

    #[test]
    fn a_program_works_in_the_mode_that_fits_the_access() {
        let modes = |current: &str, ids: &[&str]| -> Modes {
            let available: Vec<_> = ids.iter().map(|id| json!({"id": id})).collect();
            let modes = json!({"currentModeId": current, "availableModes": available});
            serde_json::from_str(&modes.to_string()).unwrap()
        };
        let codex = ["read-only", "workspace-write", "agent"];
        let others = ["default", "acceptEdits", "yolo"];
        for (current, ids, read_only, write) in [
            ("agent", &codex, Some("read-only"), Some("workspace-write")),
            ("read-only", &codex, None, Some("workspace-write")),
            ("default", &others, None, None),
            ("yolo", &others, Some("default"), Some("default")),
            ("build", &["build", "plan", "x"], None, None),
        ] {
            let modes = modes(current, ids);
            assert_eq!(mode(&modes, Access::ReadOnly), read_only, "{current}");
            assert_eq!(mode(&modes, Access::WorkspaceWrite), write, "{current}");
        }
        assert_eq!(mode(&Modes::default(), Access::ReadOnly), None);
    }

    #[test]
    fn edits_stay_in_the_folder() {
        let allowed =
            |call: &ToolCall| denial(call, Access::WorkspaceWrite, Path::new("/repo")).is_none();
        for (path, expected) in [
            ("/repo/a", true),
            ("a/../b", true),
            ("/etc/passwd", false),
            ("/repo/../etc", false),
            ("../x", false),
            ("/repository/x", false),
            (".git/hooks/pre-commit", false),
            ("/repo/src/../.git/config", false),
            (".gitignore", true),
        ] {
            let edit = json!({"kind": "edit"});
            for field in ["locations", "content"] {
                let mut edit = edit.clone();
                edit[field] = json!([{"path": "/repo/fine"}, {"path": path}]);
                assert_eq!(allowed(&call(&edit)), expected, "{field} {path}");
            }
            let mut edit = edit.clone();
            edit["rawInput"] = json!({"file_path": path});
            assert_eq!(allowed(&call(&edit)), expected, "rawInput {path}");
        }
    }

    #[test]
    fn what_is_allowed_is_allowed_once() {
        let options: Vec<PermissionOption> = serde_json::from_str(
            r#"[{"optionId":"a","kind":"allow_always"},{"optionId":"b","kind":"allow_once"},
                {"optionId":"c","kind":"reject_always"},{"optionId":"d","kind":"reject_once"}]"#,
        )
        .unwrap();
        assert_eq!(choose(&options, true), Some("b"));
        assert_eq!(choose(&options, false), Some("d"));
        assert_eq!(choose(&options[..1], true), Some("a"));
        assert_eq!(choose(&options[2..3], false), Some("c"));
        assert_eq!(choose(&options[..2], false), None);
    }
}
