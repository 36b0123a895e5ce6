//! The stable codes of violations, problems and warnings, and the page that explains each.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Declares an enum of stable codes, each with a title and a page `explain/<code>.md` beside the
/// calling file.
#[macro_export]
macro_rules! codes {
    ($(#[$about:meta])* $codes:ident, $unknown:ident; $($(#[$doc:meta])* $name:ident = $code:literal, $title:literal;)*) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $codes { $($(#[$doc])* #[doc = $title] $name,)* }

        impl $codes {
            /// Every code, in order.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The code as it is printed.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $code,)* }
            }

            /// The meaning of the code, in a few words.
            pub fn title(self) -> &'static str {
                match self { $(Self::$name => $title,)* }
            }

            /// The page that explains the code, as Markdown.
            pub fn page(self) -> &'static str {
                match self { $(Self::$name => include_str!(concat!("explain/", $code, ".md")),)* }
            }
        }

        impl std::fmt::Display for $codes {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        /// A text that is not a code.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $unknown(pub String);

        impl std::fmt::Display for $unknown {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "no such code: {}", self.0)
            }
        }

        impl std::error::Error for $unknown {}

        impl std::str::FromStr for $codes {
            type Err = $unknown;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let wanted = text.trim();
                let found = Self::ALL.iter().copied().find(|code| code.as_str().eq_ignore_ascii_case(wanted));
                found.ok_or_else(|| $unknown(text.to_owned()))
            }
        }
    };
}

codes! {
    /// A code that never changes its meaning.
    ///
    /// `C01xx` concern the extraction and the syntax of a result, `C02xx` its schema, `C03xx` its rules,
    /// `C04xx` a contract itself, `C05xx` two versions of a contract. `W` codes are warnings: `W01xx`
    /// about a result, `W04xx` about a contract.
    Code, UnknownCode;
    NoResult = "C0101", "no result was found in the text";
    EmptyText = "C0102", "the text is empty";
    TextTooLarge = "C0103", "the text is larger than the limit";
    TooDeep = "C0104", "the result is nested deeper than the limit";
    TextAroundResult = "C0105", "there is text around a result that must be alone";
    SeveralResults = "C0106", "there are several values where only one is allowed";
    NotFenced = "C0107", "the result is not in a fenced block";
    BlockNotClosed = "C0108", "the output block is not closed";
    OnlyThinking = "C0109", "the only result is in a thinking section";
    NotUtf8 = "C0110", "the text is not UTF-8";
    WrongForm = "C0111", "the result is in another form than the contract asks for";
    DifferingResults = "C0112", "there are several valid results that differ";
    OnlyQuoted = "C0116", "the only result repeats what the agent was shown";
    CopyOfEarlier = "C0117", "the result equals an earlier result of the run";
    ChannelsDiffer = "C0118", "the agent sent two results that differ";
    ProblemLeftOut = "C0119", "the result leaves out a problem that an earlier answer reported";
    Syntax = "C0120", "the result is not JSON";
    Truncated = "C0121", "the result is cut off";
    NotANumber = "C0122", "NaN and infinities are not JSON";
    LoneSurrogate = "C0123", "half of a surrogate pair is not text";
    DuplicateKey = "C0124", "a key appears twice in one object";
    Trailing = "C0125", "there is extra content after the result in its block";
    Ambiguous = "C0126", "the result can be read in two ways";
    UnclearValue = "C0127", "a value of the output block is not complete or not clear";
    TooManyValues = "C0128", "the result has more values than the limit";
    WorkLimit = "C0129", "checking the result takes more work than the limit";
    Missing = "C0201", "a required field is missing";
    WrongType = "C0202", "a value has the wrong type";
    NotAllowed = "C0203", "a value is not one of those allowed";
    OutOfRange = "C0204", "a number is out of range";
    WrongLength = "C0205", "a text is too short or too long";
    WrongPattern = "C0206", "a text does not match its pattern";
    WrongSize = "C0207", "a list or object has too few or too many entries";
    NotUnique = "C0208", "entries that must differ are equal";
    UnknownField = "C0209", "a field is not part of the contract";
    WrongFormat = "C0210", "a text is not in the named format";
    NoAlternative = "C0211", "a value matches none of the alternatives";
    Placeholder = "C0212", "a placeholder of the template was left in";
    Forbidden = "C0213", "a value is not allowed here";
    NotRelativePath = "C0214", "a path is not relative to the repository";
    MissingWhen = "C0301", "a field is required by another field's value";
    PresentWhen = "C0302", "a field must be absent given another field's value";
    Contradiction = "C0303", "fields of the result contradict each other";
    DuplicateId = "C0304", "an id appears twice in a list";
    RuleFailed = "C0305", "a rule could not be evaluated";
    FilledDiffers = "C0306", "a field that is filled in has another value";
    ContractSyntax = "C0401", "a contract file cannot be read";
    BadSchema = "C0402", "a contract's schema is not valid";
    RemoteReference = "C0403", "a schema refers to another document";
    BadRule = "C0404", "a rule of a contract is not valid";
    BadExample = "C0405", "an example of a contract fails it";
    BadClaim = "C0406", "a claim of a contract is not valid";
    DuplicateContract = "C0407", "a contract id or alias is taken";
    UnknownContract = "C0408", "no contract has this id";
    BadId = "C0409", "a contract id is malformed";
    BadField = "C0410", "a short field form is malformed";
    BadPolicy = "C0411", "a policy names something that does not exist";
    BadDisplay = "C0412", "a display template is not valid";
    BadFilled = "C0413", "a field that is filled in is not valid";
    ApprovingExample = "C0414", "agents are shown an example that approves";
    OldValuesFail = "C0501", "a value that was valid no longer is";
    NewValuesFail = "C0502", "a new value does not satisfy an old reader";
    FramingChanged = "C0503", "the framing changed";
    RuleChanged = "C0504", "a rule was added, changed or removed";
    Unproven = "C0505", "compatibility could not be proven";
    NotNewer = "C0506", "the new version is older than the old one";
    ReadsLess = "C0507", "the new version is less lenient than the old one";
    UnknownFieldNote = "W0101", "a field is not part of the contract and was kept";
    DefaultUsed = "W0102", "a missing field was given its default";
    DuplicateKeyNote = "W0103", "a key appears twice with the same value";
    LongBlock = "W0104", "the output block is long";
    LineWithoutColon = "W0105", "a line of the block has no colon";
    RuleWarning = "W0106", "fields of the result do not quite agree";
    Deprecated = "W0107", "the contract is deprecated";
    LaterNeedsRepair = "W0108", "a later candidate was skipped because it needs repairs";
    DifferingResultsNote = "W0109", "an earlier valid result differs from the last one";
    NotFilled = "W0110", "a field that is filled in is not known here";
    BesideEnvelope = "W0111", "fields beside the result in its envelope were left out";
    MisspeltKeyword = "W0401", "a keyword of a contract's schema is probably misspelt";
    MisspeltFormat = "W0402", "a format of a contract's schema is probably misspelt";
    NoEffect = "W0403", "a setting of a contract's policy has no effect";
    PlaceholderExample = "W0404", "an example of a contract is a placeholder";
}

impl Code {
    /// Whether the code is a warning.
    pub fn is_warning(self) -> bool {
        self.as_str().starts_with('W')
    }
}

impl Serialize for Code {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl JsonSchema for Code {
    fn schema_name() -> Cow<'static, str> {
        "Code".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A stable code, which `counterfoil explain CODE` explains. `W` codes are warnings.",
            "type": "string",
            "pattern": "^[CW][0-9]{4}$",
        })
    }
}

impl<'de> Deserialize<'de> for Code {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}
