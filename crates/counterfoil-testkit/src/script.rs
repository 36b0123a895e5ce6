//! Scripts for the `script:` agent: what the agents of a workflow reply and do.

use serde_json::{Value, json};

/// A script that is built reply by reply. Methods that change a reply change the last one.
#[derive(Clone, Debug, Default)]
pub struct AgentScript {
    replies: Vec<Value>,
    answers: Vec<Value>,
}

impl AgentScript {
    /// A script with these replies.
    pub fn from_replies(replies: &[Value]) -> Self {
        Self { replies: replies.to_vec(), answers: Vec::new() }
    }

    /// Adds an empty reply of an agent.
    pub fn reply(&mut self, agent: &str) -> &mut Self {
        self.replies.push(json!({ "agent": agent }));
        self
    }

    /// Sets a key of the last reply.
    pub fn set(&mut self, key: &str, value: Value) -> &mut Self {
        self.last_reply()[key] = value;
        self
    }

    /// The last reply has this text.
    pub fn text(&mut self, text: &str) -> &mut Self {
        self.set("text", text.into())
    }

    /// The last reply writes a file.
    pub fn writes(&mut self, path: &str, text: &str) -> &mut Self {
        self.last_reply()["writes"][path] = text.into();
        self
    }

    /// The last reply deletes a file.
    pub fn deletes(&mut self, path: &str) -> &mut Self {
        let reply = self.last_reply();
        match reply.get_mut("deletes").and_then(Value::as_array_mut) {
            Some(paths) => paths.push(path.into()),
            None => reply["deletes"] = json!([path]),
        }
        self
    }

    /// The last reply fails instead of having a text: `transport`, `limit`, `permission`, `timeout`,
    /// `agent`.
    pub fn fails(&mut self, kind: &str) -> &mut Self {
        self.last_reply().as_object_mut().unwrap().remove("text");
        self.set("fail", kind.into())
    }

    /// Answers a question when it is asked.
    pub fn answer(&mut self, question: &str, answer: &str) -> &mut Self {
        self.answers.push(json!({"question": question, "answer": answer}));
        self
    }

    /// The script as the file that the agent reads.
    pub fn to_text(&self) -> String {
        let script = json!({"replies": self.replies, "answers": self.answers});
        serde_json::to_string_pretty(&script).unwrap()
    }

    fn last_reply(&mut self) -> &mut Value {
        self.replies.last_mut().expect("add a reply before changing it")
    }
}
