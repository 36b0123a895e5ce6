//! packs
