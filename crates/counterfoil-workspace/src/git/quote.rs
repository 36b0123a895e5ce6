//! Git's quoting of paths in line-based input and output.

/// Quotes a path the way git does with `core.quotePath=false`: a path with control characters,
/// double quotes or backslashes is put in double quotes with C escapes, any other is left as it is.
///
/// Git reads such a path from a line of input and writes it into patches.
pub fn quote_path(path: &[u8]) -> Vec<u8> {
    let needs_escape = |byte: u8| byte < 0x20 || matches!(byte, b'"' | b'\\' | 0x7f);
    if !path.iter().any(|byte| needs_escape(*byte)) {
        return path.to_vec();
    }
    let mut quoted = vec![b'"'];
    for &byte in path {
        let letter = match byte {
            0x07 => b'a',
            0x08 => b'b',
            b'\t' => b't',
            b'\n' => b'n',
            0x0b => b'v',
            0x0c => b'f',
            b'\r' => b'r',
            b'"' | b'\\' => byte,
            _ if needs_escape(byte) => {
                quoted.extend(format!("\\{byte:03o}").as_bytes());
                continue;
            }
            _ => {
                quoted.push(byte);
                continue;
            }
        };
        quoted.extend([b'\\', letter]);
    }
    quoted.push(b'"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_quoted_only_where_git_requires_it() {
        for (path, line) in [
            ("a b", "a b"),
            ("plain/name ", "plain/name "),
            ("é", "é"),
            ("a\nb", r#""a\nb""#),
            (r#"a"b\c"#, r#""a\"b\\c""#),
            ("\"", r#""\"""#),
            ("x\n\"\\\x01\x7f", r#""x\n\"\\\001\177""#),
            ("\x07\x08\t\x0b\x0c\r", r#""\a\b\t\v\f\r""#),
        ] {
            assert_eq!(quote_path(path.as_bytes()), line.as_bytes(), "{path:?}");
        }
    }
}
