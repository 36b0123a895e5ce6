//! Says what a look at a large folder is doing: a run that seems to do nothing worries people.

use counterfoil_contract::text::display_path;
use std::future::Future;
use std::path::Path;
use std::pin::pin;
use std::time::Duration;

/// A look that takes longer is announced.
const SLOW_LOOK: Duration = Duration::from_secs(1);

/// Waits for a look at the files of a folder.
pub(crate) async fn announce_if_slow<T>(
    look: impl Future<Output = T>,
    folder: &Path,
    notice: &(dyn Fn(&str) + Sync),
) -> T {
    let mut look = pin!(look);
    match tokio::time::timeout(SLOW_LOOK, look.as_mut()).await {
        Ok(done) => done,
        Err(_) => {
            let folder = display_path(folder);
            notice(&format!("looking at the files of {folder} takes longer than a second"));
            look.await
        }
    }
}
