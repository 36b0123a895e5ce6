//! Workflows with scripted agents, and what is printed on which stream.

pub(crate) mod project;
pub(crate) mod undoing;

mod allowed;
mod answers;
mod artifacts;
mod attempts;
mod checking;
mod command_agents;
mod commands;
mod failures;
mod fans;
mod known;
mod language;
mod links;
mod listing;
mod moves;
mod people;
mod prompts;
mod quotations;
mod reopening;
mod resuming;
mod screens;
mod steps;
mod usage;
mod words;
