//! Secrets of every kind, in texts and in JSON.

use super::*;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::sync::OnceLock;

/// A new redactor. Compiling its patterns takes longer than most tests.
fn redactor() -> Redactor {
    static FRESH: OnceLock<Redactor> = OnceLock::new();
    FRESH.get_or_init(|| Redactor::new(&[]).unwrap()).clone()
}

fn plain(text: &str) -> String {
    redactor().redact_text(text, RedactionLevel::Full)
}

fn bytes(text: &str) -> String {
    String::from_utf8(redactor().redact_bytes(text.as_bytes(), RedactionLevel::Full).unwrap())
        .unwrap()
}

const PEM: &str = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7bq0aDNTZ5TtUBp8i4GzTqZ0Wn0l2M3a\nabcd==\n-----END RSA PRIVATE KEY-----";
const JWT: &str =
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U";

const SENDGRID: &str = "SG.aBcDeFgHiJkLmNoPqRsTuV.aBcDeFgHiJkLmNoPqRsTuVwXyZ0123456789-_aBcDe";
const DIGITALOCEAN: &str =
    "dop_v1_0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const TWILIO: &str = "AC0123456789abcdef0123456789abcdef:fedcba9876543210fedcba9876543210";
const TELEGRAM: &str = "7012345678:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw1";
const AZURE_STORAGE: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
const AZURE_SIGNED: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KB+AStBekso1==";
const AGE: &str = "AGE-SECRET-KEY-1QQPZRY9X8GF2TVDW0S3JN54KHCE6MUA7LQQPZRY9X8GF2TVDW0S3JN54KHC";

/// A secret, what it is called, and a text around it.
fn planted() -> Vec<(&'static str, &'static str, String)> {
    [
        ("sk-ant-api03-Zk3vQ9xY_w", "key", "the key is {} here"),
        ("sk-proj-8hG4kQ2pLz0", "key", "MODELS={}"),
        ("ghp_16C7e42F292c6912E7710c838347Ae178B4a", "github-token", "push with {}."),
        ("github_pat_11ABCDEFG0abcdefghijkl_mnop", "github-token", "({})"),
        ("AKIAIOSFODNN7EXAMPLE", "aws-key", "id {}"),
        ("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY1", "secret", "aws_secret_access_key = {}"),
        ("AIzaSyD-9tSrke72PouQMnMX-a7eZSW0jkFMBWY", "google-key", "?key={}&x=1"),
        (JWT, "jwt", "cookie jar {}"),
        ("abcDEF123456789", "bearer", "curl -H 'x: Bearer {}'"),
        ("dXNlcjpwYXNz", "authorization", "Authorization: Basic {}"),
        ("k-123-very-own", "api-key", "x-api-key: {}"),
        ("hunter2", "password", "postgres://me:{}@db.example/app"),
        ("correct horse 1", "secret", "password: \"{}\""),
        ("s3cr3t-value", "secret", "DB_PASSWORD={}"),
        ("sid=9f8e7d6c5b4a; theme=1", "cookie", "Cookie: {}"),
        ("sk_live_4eC39HqLyjWDarjtT1zdp7dc", "stripe-key", "STRIPE={}"),
        ("rk_test_51Habcdefgh0123456789", "stripe-key", "({})"),
        ("whsec_5WbX5kEWLlfzsGNjH64I8lOOqUB6e8FH", "stripe-key", "hook {}."),
        ("npm_aBcDeFgHiJkLmNoPqRsTuVwXyZ0123456789", "npm-token", "//registry/:x={}"),
        ("pypi-AgEIcHlwaS5vcmcCJDZmNzk2ZmQ5LTA2ZWQtNGY", "pypi-token", "twine -p {}"),
        ("hf_aBcDeFgHiJkLmNoPqRsTuVwXyZaBcDeFgH", "huggingface-token", "login {}"),
        ("api_org_aBcDeFgHiJkLmNoPqRsTuVwXyZaBcDeFgH", "huggingface-token", "org {}"),
        (SENDGRID, "sendgrid-key", "mail with {}."),
        (DIGITALOCEAN, "digitalocean-token", "doctl {}"),
        ("SK0123456789abcdef0123456789abcdef", "twilio-key", "key {}, please"),
        (TWILIO, "twilio-key", "curl -u {} https://api.example"),
        (TELEGRAM, "telegram-token", "https://api.telegram.org/bot{}/getMe"),
        ("123456:ABC-DEF1234ghIkl-zyx57W2v1u123ew11", "telegram-token", "bot {}"),
        ("abc8Q~defghijklmnopqrstuvwxyzABCDEFGH012", "azure-key", "client='{}'"),
        (AZURE_STORAGE, "azure-key", "AccountName=x;AccountKey={};EndpointSuffix=core.windows.net"),
        (
            "QTlJ9kX2mB4vN6cZ8pL0wR3tY5uI7oA1sD2fG4hJ6kE=",
            "azure-key",
            "Endpoint=sb://x/;SharedAccessKey={}",
        ),
        (
            "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8%3D",
            "azure-key",
            "https://x/y?sv=2020-08-04&sig={}",
        ),
        (AZURE_SIGNED, "azure-key", "the key is {}"),
        (AGE, "age-key", "# created: today\n{}\n"),
        (PEM, "private-key", "before\n{}\nafter"),
    ]
    .into_iter()
    .map(|(secret, kind, around)| (secret, kind, around.replace("{}", secret)))
    .collect()
}

#[test]
fn every_kind_of_secret_is_taken_out_of_a_text_and_nothing_else() {
    for (secret, kind, text) in planted() {
        assert_eq!(plain(&text), text.replace(secret, &format!("[redacted:{kind}#1]")), "{text}");
    }
}

/// Texts are shortened where they are made, before anybody redacts them.
#[test]
fn what_is_left_of_a_secret_where_a_text_was_shortened_is_taken_out() {
    // What tells its kind, and a few characters more.
    const LEAST: usize = 18;
    for (secret, kind, text) in planted() {
        let (before, _) = text.split_once(secret).unwrap();
        let (least, most) = match kind {
            // The first and the last line are no secret.
            "private-key" => (36, secret.find("\n-----END").unwrap()),
            // Without a name, its signature tells, which is near the end; before it, only the length.
            _ if secret == AZURE_SIGNED => (32, secret.len()),
            _ => (LEAST.min(secret.len() / 2 + 1), secret.len()),
        };
        for end in least..most {
            let left = &secret[..end];
            let redacted = plain(&format!("{before}{left}…"));
            let told = left.lines().last().unwrap();
            // Fewer characters are in other words, too.
            assert!(told.len() < 4 || !redacted.contains(told), "{left}: {redacted}");
            assert!(redacted.contains("[redacted:") && redacted.ends_with('…'), "{redacted}");
        }
    }
}

#[test]
fn what_is_left_of_a_known_value_is_taken_out_before_the_mark_alone() {
    let mut redactor = redactor();
    redactor.learn_variables([
        ("DEPLOY_TOKEN".to_owned(), "zebra-crossing-9".to_owned()),
        ("OTHER_TOKEN".to_owned(), "zebra-stripes-7".to_owned()),
    ]);
    let mut plain = |text: &str| redactor.redact_text(text, RedactionLevel::KnownForms);
    assert_eq!(plain("deployed with zebra-crossing…"), "deployed with [redacted:variable#1]…");
    assert_eq!(plain("zebra-st…, zebra-…"), "[redacted:variable#2]…, [redacted:variable#3]…");
    assert_eq!(plain("xzebra-crossing…"), "x[redacted:variable#1]…");
    for text in ["a zebra-crossing", "a zeb…", "zebra-crossings…", "xzebra…", "a latest…"] {
        assert_eq!(plain(text), text);
    }
}

#[test]
fn what_was_shortened_and_is_no_secret_stays() {
    for text in [
        "see https://example.com:8080/a/b…",
        "in crates/counterfoil-agents/src/redact/tests_of_2024_and_later.rs…",
        "commit 3093724fa1e5b2c6d7e8f9a0b1c2d3e4f5a6b7c8…",
        "password: see the notes…",
        "the token is required…",
        "12:34:56 the build…",
        "task-management-for-2024…",
    ] {
        assert_eq!(plain(text), text);
    }
}

#[test]
fn what_only_speaks_of_secrets_stays() {
    for text in [
        "Store the password in a safe place; the token is required.",
        "password: string",
        "{\"token\": \"string\", \"input_tokens\": 1234567, \"tokens\": \"1234567\"}",
        "token: 123456789",
        "task-management-for-2024 and ask-me-again-2024",
        "Bearer authentication is used",
        "https://example.com:8080/path@2",
        "api_key = ${API_KEY}, password=<your password>, secret = {{ secrets.KEY }}",
        "password: ********",
        "-----BEGIN CERTIFICATE-----\nMIIEpAIBAAKCAQEA7bq0aDNTZ5TtUBp8i4GzTqZ0Wn0l2M3a\n-----END CERTIFICATE-----",
        "commit 3093724fa1e5b2c6d7e8f9a0b1c2d3e4f5a6b7c8",
        // Public keys, names, hashes and paths that look a little like the secrets of a service.
        "pk_live_4eC39HqLyjWDarjtT1zdp7dc and sk_test_helper()",
        "npm_config_registry npm_lifecycle_event npm_package_dependencies_typescript_version",
        "pypi-agent-tools and pypi-AgE",
        "hf_hub_download(hf_transfer=True)",
        "SG.example.com SG.Library.Class",
        "dop_v1_spec and do_v1_0123456789abcdef0123456789abcdef",
        "SK0123456789ABCDEF0123456789ABCDEF SKU-12 AC0123 ACCESS",
        "1699999999:3093724fa1e5b2c6d7e8f9a0b1c2d3e4f5a6b7c8 src/main.rs:120:14",
        "FAQ~1 8Q~ a.b.cQ~",
        "\"integrity\": \"sha512-Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==\"",
        "https://example.com/?signature=none&sig=abc",
        "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p",
        "AGE-SECRET-KEY-1… is a secret, age-plugin-yubikey is a program",
        "--token is an option, --no-password too; use --api-key when needed",
        "[\"username\", \"password\", \"email\"]",
    ] {
        assert_eq!(plain(text), text);
    }
}

#[test]
fn equal_secrets_are_equally_numbered_and_others_are_not() {
    let text = "sk-ant-aaaaaa1 then sk-ant-bbbbbb2 then sk-ant-aaaaaa1";
    assert_eq!(plain(text), "[redacted:key#1] then [redacted:key#2] then [redacted:key#1]");
    let mut redactor = redactor();
    redactor.redact_text(text, RedactionLevel::Full);
    assert_eq!(redactor.counts(), &BTreeMap::from([("key".to_owned(), 3)]));
}

#[test]
fn json_stays_json_and_is_only_changed_where_the_secret_stands() {
    for (secret, kind, text) in planted() {
        // As an event, and as the text of one in which there is JSON again.
        let inner = format!("{{\"note\": {}, \"n\": 1.50}}", json!(text));
        for line in [json!({"type": "x", "text": text}), json!({"a": [{"text": inner}]})] {
            let written = bytes(&format!("{line}\n{{\"type\":  \"kept as it is\"}}\n"));
            let (first, second) = written.split_once('\n').unwrap();
            let read: Value =
                serde_json::from_str(first).unwrap_or_else(|error| panic!("{error}: {first}"));
            assert!(first.contains(&format!("[redacted:{kind}#1]")), "{kind}: {first}");
            for part in secret.split('\n').filter(|part| part.len() > 5) {
                assert!(!first.contains(part), "{first}");
            }
            assert_eq!(second, "{\"type\":  \"kept as it is\"}\n");
            if let Some(inner) = read.pointer("/a/0/text").and_then(Value::as_str) {
                let inner: Value =
                    serde_json::from_str(inner).unwrap_or_else(|error| panic!("{error}: {inner}"));
                assert_eq!(inner["n"].to_string(), "1.50");
            }
        }
    }
}

#[test]
fn a_field_that_is_called_a_secret_is_one_whatever_it_holds() {
    let text = r#"{"headers": {"Authorization": ["Bearer x y z"], "X-Api-Key": "ab cd"}, "client_secret": "plain words", "secret": {"type": "string"}, "passes": "yes!", "apiKey": "k\"1\"k"}"#;
    assert_eq!(
        bytes(text),
        r#"{"headers": {"Authorization": ["[redacted:secret#1]"], "X-Api-Key": "[redacted:secret#2]"}, "client_secret": "[redacted:secret#3]", "secret": {"type": "string"}, "passes": "yes!", "apiKey": "[redacted:secret#4]"}"#
    );
}

#[test]
fn a_definition_keeps_its_words() {
    let text =
        r#"{"fields":{"token":"string(1..)","password":"an own type"},"x":"sk-ant-aaaaaa1"}"#;
    let redacted = redactor().redact_bytes(text.as_bytes(), RedactionLevel::KnownForms).unwrap();
    assert_eq!(
        String::from_utf8(redacted).unwrap(),
        text.replace("sk-ant-aaaaaa1", "[redacted:key#1]")
    );
}

#[test]
fn a_secret_that_streams_in_pieces_is_seen() {
    let pieces = ["it is sk-a", "nt-api03-Zk3v", "Q9xY_w, so"];
    let line =
        |text: &str| json!({"type": "message", "content": text, "delta": true}).to_string() + "\n";
    let text: String = pieces.iter().map(|piece| line(piece)).collect();
    let expected = [line("it is [redacted:key#1]"), line(""), line(", so")].concat();
    assert_eq!(bytes(&text), expected);
    // Two events that say the same do not say one long secret.
    let twice = line("sk-ant-aaaaaa1").repeat(2);
    assert_eq!(bytes(&twice), line("[redacted:key#1]").repeat(2));
}

#[test]
fn what_is_known_or_learned_is_taken_out_where_nothing_says_what_it_is() {
    let mut redactor = redactor();
    redactor.learn_variables([
        ("MY_TOKEN".to_owned(), "zebra-crossing".to_owned()),
        ("PATH".to_owned(), "/usr/bin:/bin".to_owned()),
        ("PWD".to_owned(), "/home/somebody".to_owned()),
        ("OTHER_SECRET".to_owned(), "short".to_owned()),
    ]);
    redactor.learn(b"{\"password\": \"hunter2hunter2\"}\nAPI_TOKEN=abc123def456\n");
    let text = redactor.redact_text(
        "zebra-crossing hunter2hunter2 abc123def456 /usr/bin:/bin /home/somebody short",
        RedactionLevel::KnownForms,
    );
    assert_eq!(
        text,
        "[redacted:variable#1] [redacted:secret#1] [redacted:secret#2] /usr/bin:/bin /home/somebody short"
    );
}

#[test]
fn patterns_of_a_project_redact_their_group_and_invalid_ones_are_rejected() {
    let mut redactor =
        Redactor::new(&[r"ACME-(\d{4})-KEY".to_owned(), "cust_[a-z]+".to_owned()]).unwrap();
    assert_eq!(
        redactor.redact_text("ACME-1234-KEY for cust_abc", RedactionLevel::Full),
        "ACME-[redacted:pattern#1]-KEY for [redacted:pattern#2]"
    );
    for (pattern, why) in [
        ("(", "unclosed group"),
        ("a*", "require a character"),
        ("(a{1000}){1000}", "use smaller counts"),
    ] {
        let error = Redactor::new(&[pattern.to_owned()]).err().unwrap().to_string();
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn a_private_key_that_is_cut_is_taken_out_as_far_as_it_goes() {
    let cut = PEM.split_once("abcd").unwrap().0;
    assert_eq!(plain(&format!("{cut}abc")), "[redacted:private-key#1]");
    let source = format!("\"{}\" and a lot more", cut.trim_end().replace('\n', "\\n"));
    assert_eq!(plain(&source), "\"[redacted:private-key#1]\" and a lot more");
    // Many that are cut cost no more than their length.
    let many = "-----BEGIN PRIVATE KEY-----\n".repeat(20_000);
    assert_eq!(plain(&many).lines().count(), 20_000);
}

#[test]
fn what_is_no_text_is_not_passed_on() {
    assert_eq!(redactor().redact_bytes(b"sk-ant-aaaaaa1 \xff", RedactionLevel::Full), None);
}

#[test]
fn a_string_that_cannot_be_read_stays_a_string() {
    let text = r#"{"a":"\ud83d cut, sk-ant-aaaaaa1","b":1}"#;
    assert_eq!(bytes(text), r#"{"a":"\ud83d cut, [redacted:key#1]","b":1}"#);
}

/// Texts made of what secrets are made of.
fn pieces() -> impl Strategy<Value = String> {
    let secrets: Vec<String> =
        planted().into_iter().flat_map(|(secret, _, text)| [secret.to_owned(), text]).collect();
    let piece = prop_oneof![
        4 => prop::sample::select(secrets),
        2 => prop::sample::select(vec![
            "password", "\"token\": ", "=", ": ", "\"", "\\", "\n", "://", "@", "Bearer ", "AKIA", "sk-", "[redacted:key#1]",
            "[redacted:", "#1]", "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "eyJ", ".", "{", "}", "'",
        ]).prop_map(str::to_owned),
        2 => "[a-zA-Z0-9 é\\\\\"]{0,12}",
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn taking_out_twice_is_taking_out_once(text in pieces()) {
        let once = plain(&text);
        prop_assert_eq!(plain(&once), once);
    }

    #[test]
    fn lines_of_json_stay_lines_of_json(texts in prop::collection::vec(pieces(), 1..5), key in "[a-z_]{1,8}|token|api_key") {
        let lines: String =
            texts.iter().map(|text| json!({"type": "t", key.as_str(): text, "more": [text, {"n": 1}]}).to_string() + "\n").collect();
        let once = bytes(&lines);
        prop_assert_eq!(once.lines().count(), texts.len());
        for (line, text) in once.lines().zip(&texts) {
            let read: Value = serde_json::from_str(line).unwrap();
            prop_assert_eq!(&read["more"][1]["n"], &json!(1));
            prop_assert!(read["more"][0].is_string(), "{}", text);
        }
        prop_assert_eq!(bytes(&once), once);
    }

    #[test]
    fn no_planted_key_is_left(before in "[ a-z\"{}:,]{0,20}", after in "[ \"{}:,.]{0,20}", which in 0usize..35) {
        let (secret, _, _) = planted()[which].clone();
        let alone = redactor().spans(secret, RedactionLevel::KnownForms);
        if alone.iter().any(|span| span.at == (0..secret.len())) {
            let text = format!("{before} {secret}{after}");
            let left = plain(&text);
            prop_assert!(!left.contains(secret), "{}", left);
        }
    }
}

#[test]
fn what_is_left_of_a_cut_string_is_redacted_by_the_name_of_its_field() {
    let line = |text: &str| json!({"type": "t", "token": text}).to_string() + "\n";
    // The second text continues the secret of the first one, and its rest is a secret as well.
    let once = bytes(&(line("Authorization: Basic dXNlcjpwYXNz") + &line("{\\é\\")));
    assert_eq!(bytes(&once), once);
    assert!(!once.contains('é'), "{once}");
}

/// A list, and the list without its secrets.
#[test]
fn secrets_that_are_spread_over_the_items_of_a_list_are_seen() {
    let gone = "[redacted:secret#1]";
    for (list, expected) in [
        // After an option, a header or an assignment, whatever the secret looks like.
        (json!(["curl", "--token", "abcdef", "x"]), json!(["curl", "--token", gone, "x"])),
        (json!(["--api-key", "plain words", "y"]), json!(["--api-key", gone, "y"])),
        (json!(["-password", "hunter"]), json!(["-password", gone])),
        (json!(["--db-password=", "hunter"]), json!(["--db-password=", gone])),
        (json!(["Authorization:", "Bearer", "wxyz"]), json!(["Authorization:", "Bearer", gone])),
        (
            json!(["-H", "Authorization: Bearer", "wxyz"]),
            json!(["-H", "Authorization: Bearer", gone]),
        ),
        (json!(["Cookie:", "sid is blue"]), json!(["Cookie:", gone])),
        (
            json!({"argv": [["env", "--secret", "abcdef"]]}),
            json!({"argv": [["env", "--secret", gone]]}),
        ),
        // After a name alone, if it looks like one.
        (json!(["Authorization", "abc123def"]), json!(["Authorization", gone])),
        (json!(["bearer", "abc123def"]), json!(["bearer", gone])),
        (json!(["username", "password", "email"]), json!(["username", "password", "email"])),
        (json!(["Authorization", "Content-Type"]), json!(["Authorization", "Content-Type"])),
        (json!(["--no-password", "plain"]), json!(["--no-password", "plain"])),
        // Not across something that is not a string, nor over the end of the list.
        (json!([["--token"], "abcdef"]), json!([["--token"], "abcdef"])),
        (json!(["--token", {"a": "abcdef"}]), json!(["--token", {"a": "abcdef"}])),
        // Cut into adjacent items.
        (
            json!(["x", "sk-a", "nt-api03-Zk3vQ9xY_w", "y"]),
            json!(["x", "[redacted:key#1]", "", "y"]),
        ),
        (
            json!(["ghp_16C7e42F292c6912", "E7710c838347", "Ae178B4a"]),
            json!(["[redacted:github-token#1]", "", ""]),
        ),
        (
            json!([
                PEM.lines().next(),
                PEM.lines().nth(1),
                "abcd==",
                "-----END RSA PRIVATE KEY-----"
            ]),
            json!(["[redacted:private-key#1]", "", "", ""]),
        ),
        // What follows a complete secret is not always a part of it.
        (json!(["sk-ant-aaaaaa1", "README.md"]), json!(["[redacted:key#1]", "README.md"])),
        (json!(["sk-ant-aaaaaa1", "build"]), json!(["[redacted:key#1]", "build"])),
        (
            json!(["sk-ant-aaaaaa1", "sk-ant-bbbbbb2"]),
            json!(["[redacted:key#1]", "[redacted:key#2]"]),
        ),
        (
            json!(["-H", "Cookie: sid=abc123", "https://h2.example"]),
            json!(["-H", "Cookie: [redacted:cookie#1]", "https://h2.example"]),
        ),
    ] {
        let expected = expected.to_string();
        assert_eq!(bytes(&list.to_string()), expected);
        assert_eq!(bytes(&expected), expected, "once is enough");
        // The same as an event among other lines.
        assert_eq!(bytes(&format!("first\n{list}\nlast\n")), format!("first\n{expected}\nlast\n"));
    }
}

#[test]
fn a_learnt_secret_is_seen_in_pieces() {
    let mut redactor = redactor();
    redactor.learn(b"{\"password\": \"hunter2hunter2\"}");
    redactor.learn_variables([("MY_TOKEN".to_owned(), "open sesame now".to_owned())]);
    for (list, expected) in [
        (json!(["hunter2", "hunter2"]), json!(["[redacted:secret#1]", ""])),
        (json!(["a hun", "ter2hun", "ter2 b"]), json!(["a [redacted:secret#1]", "", " b"])),
        (json!(["say", "open", "sesame", "now"]), json!(["say", "[redacted:variable#1]", "", ""])),
    ] {
        let list = list.to_string();
        let redacted = redactor.redact_bytes(list.as_bytes(), RedactionLevel::Full).unwrap();
        assert_eq!(String::from_utf8(redacted).unwrap(), expected.to_string());
    }
}

#[test]
fn options_on_a_command_line_are_seen() {
    for (text, secret) in [
        ("deploy --token abc123 --force", "abc123"),
        ("deploy --api-key 'k3y-value' now", "k3y-value"),
        ("[\"deploy\", \"--password\", \"abc123\"]", "abc123"),
        ("args:\n  - --token\n  - abc123\n", "abc123"),
    ] {
        assert_eq!(plain(text), text.replace(secret, "[redacted:secret#1]"));
    }
}

#[test]
fn the_end_of_a_sentence_is_not_learnt() {
    for learnt in [
        "Use DB_PASSWORD=s3cr3t-value.",
        "Use `DB_PASSWORD=s3cr3t-value`.",
        "Is it DB_PASSWORD=s3cr3t-value?",
        "token: s3cr3t-value...",
        "{\"password\": \"s3cr3t-value.\"}",
        "send Bearer s3cr3t-value.",
        "{\"argv\": [\"--token\", \"s3cr3t-value.\"]}",
    ] {
        let mut redactor = redactor();
        redactor.learn(learnt.as_bytes());
        for text in ["a s3cr3t-value b", "a s3cr3t-value.", "xs3cr3t-valuex"] {
            let redacted = redactor.redact_text(text, RedactionLevel::Full);
            let label = redacted.replace("[redacted:secret#1]", "[redacted:bearer#1]");
            assert_eq!(label, text.replace("s3cr3t-value", "[redacted:bearer#1]"), "{learnt}");
        }
    }
    let mut redactor = redactor();
    redactor.learn_variables([("MY_TOKEN".to_owned(), "zebra-crossing.".to_owned())]);
    let text = redactor.redact_text("zebra-crossing!", RedactionLevel::Full);
    assert_eq!(text, "[redacted:variable#1]!");
}
