//! Countersign as a library: the contract engine and the contracts of the five packs under one roof.
//!
//! ```
//! use countersign::contracts::QaOutput;
//!
//! let qa: QaOutput = countersign::parse(r#"All good. {"dod_achieved": true, "checks": []}"#)?;
//! assert!(qa.dod_achieved);
//! # Ok::<(), countersign::Rejection>(())
//! ```

pub use countersign_contract::*;
pub use countersign_packs::{contracts, registry};
