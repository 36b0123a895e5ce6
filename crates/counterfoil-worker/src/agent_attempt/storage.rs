//! Stores prompts and replies as transcripts.

use crate::attempt::{AttemptContext, TranscriptMode};
use counterfoil_agents::agent::AgentReply;
use counterfoil_agents::transcript::{StoredTranscript, TranscriptError, TranscriptSink};
use counterfoil_flow::Reply;

/// Stores a prompt.
pub(super) fn store_prompt(
    context: &dyn AttemptContext,
    name: &str,
    mode: TranscriptMode,
    prompt: &str,
) -> Result<(), TranscriptError> {
    let mut file = context.transcript(name, mode)?;
    file.write(prompt.as_bytes())?;
    file.close();
    Ok(())
}

/// Finishes the transcript of a reply. Output that streamed from a process is synced to disk. A
/// reply that did not stream is written here and only closed, since the journal has it as well.
pub(super) fn store_reply(
    mut transcript: Box<dyn TranscriptSink>,
    answer: &AgentReply,
) -> Result<StoredTranscript, TranscriptError> {
    if let Some(error) = transcript.error() {
        return Err(error.clone());
    }
    if answer.recorded {
        return transcript.finish();
    }
    transcript.write(&answer.text)?;
    Ok(transcript.close())
}

/// Stores everything that came with the text of a reply in transcripts of their own.
pub(super) fn store_details(
    context: &dyn AttemptContext,
    name: &str,
    mode: TranscriptMode,
    answer: &AgentReply,
) -> Result<Reply, TranscriptError> {
    let details = &answer.details;
    let store = |what: &str, bytes: &[u8]| -> Result<Option<String>, TranscriptError> {
        if bytes.is_empty() {
            return Ok(None);
        }
        let mut file = context.transcript(&format!("{name}.{what}"), mode)?;
        file.write(bytes)?;
        Ok(Some(file.close().path))
    };
    let lines = |values: Vec<serde_json::Result<String>>| -> String {
        values.into_iter().flatten().map(|line| line + "\n").collect()
    };
    let submissions = lines(details.submissions.iter().map(serde_json::to_string).collect());
    let structured = lines(details.structured.iter().map(serde_json::to_string).collect());
    Ok(Reply {
        text: if details.events { store("text", &answer.text)? } else { None },
        errors: store("stderr", &details.errors)?,
        submissions: store("submissions", submissions.as_bytes())?,
        structured: store("structured", structured.as_bytes())?,
        conversation: details.conversation.clone(),
        model: details.model.clone(),
        exit: details.exit,
        denied: details.denied.clone(),
        notes: details.notes.clone(),
        ..Reply::default()
    })
}
