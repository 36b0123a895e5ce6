//! Counterfoil as a library: the contract engine and the contracts of the five packs under one
//! roof.
//!
//! ```
//! use counterfoil::contracts::QaOutput;
//!
//! let qa: QaOutput = counterfoil::parse(r#"All good. {"dod_achieved": true, "checks": []}"#)?;
//! assert!(qa.dod_achieved);
//! # Ok::<(), counterfoil::Rejection>(())
//! ```

pub use counterfoil_contract::*;
pub use counterfoil_packs::{contracts, registry};
