//! x
use countersign_flow::*;
use std::collections::BTreeMap;
struct Dir(std::path::PathBuf);
impl Files for Dir {
    fn read(&self, p: &str) -> Result<String, String> { std::fs::read_to_string(self.0.join(p)).map_err(|e| e.to_string()) }
    fn list(&self, p: &str) -> Result<Vec<String>, String> { Ok(vec![p.to_owned()]) }
}
#[allow(clippy::print_stdout)]
fn main() {
    let path = std::path::PathBuf::from(std::env::args().nth(1).unwrap_or_default());
    let dir = Dir(path.parent().map(|p| p.to_owned()).unwrap_or_default());
    let t = std::time::Instant::now();
    match check(path.file_name().and_then(|n| n.to_str()).unwrap_or_default(), &dir, &countersign_packs::registry()) {
        Ok(w) => println!("ok {} {:?}", w.name, t.elapsed()),
        Err(r) => println!("{}", render(&r.findings, &r.files, Default::default())),
    }
    let _ = BTreeMap::<u8, u8>::new();
}
