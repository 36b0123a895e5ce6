//! Counterfoil as a library: extraction and validation of results, and the contracts of the five
//! packs.
//!
//! ```
//! use counterfoil::contracts::QaOutput;
//!
//! let qa: QaOutput = counterfoil::parse(r#"All good. {"dod_achieved": true, "checks": []}"#)?;
//! assert!(qa.dod_achieved);
//! # Ok::<(), counterfoil::ParseError>(())
//! ```

pub use counterfoil_contract::*;
pub use counterfoil_packs::{contracts, registry};
