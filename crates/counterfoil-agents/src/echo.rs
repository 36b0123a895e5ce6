//! Text that merely echoes the prompt is ignored: the prompt shows an example of the result.

use std::borrow::Cow;

/// Blanks out every copy of the prompts in a reply. An echo of the prompt contains an example of
/// the result, which must not be read as the result. All other bytes keep their offsets.
pub fn blank_out_prompts<'r>(reply: &'r [u8], prompts: &[&str]) -> Cow<'r, [u8]> {
    let mut reply = Cow::Borrowed(reply);
    for prompt in prompts.iter().map(|prompt| prompt.trim()).filter(|prompt| !prompt.is_empty()) {
        let found: Vec<usize> = memchr::memmem::find_iter(&reply, prompt).collect();
        for start in found {
            for byte in &mut reply.to_mut()[start..start + prompt.len()] {
                if *byte != b'\n' {
                    *byte = b' ';
                }
            }
        }
    }
    reply
}
