//! Claims and the test inventory.

mod claims;
mod inventory;
