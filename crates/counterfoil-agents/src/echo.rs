//! Text that merely echoes the prompt is ignored: the prompt shows an example of the result.

use std::borrow::Cow;

/// What an agent said without what it was told: an echo of the prompt holds an example of the
/// result, and that is none. The rest stays where it is, so that places are those of what was said.
pub fn without<'s>(said: &'s [u8], told: &[&str]) -> Cow<'s, [u8]> {
    let mut said = Cow::Borrowed(said);
    for told in told.iter().map(|told| told.trim()).filter(|told| !told.is_empty()) {
        let found: Vec<usize> = memchr::memmem::find_iter(&said, told).collect();
        for at in found {
            for byte in &mut said.to_mut()[at..at + told.len()] {
                if *byte != b'\n' {
                    *byte = b' ';
                }
            }
        }
    }
    said
}
