//! Word lists and how names and titles are put together from them.
//!
//! All made up here. One name or title word in about twenty has letters outside ASCII.

use crate::random::Random;

pub(crate) const FIRST_NAMES: &[&str] = &[
    "Anna", "Robert", "Maria", "James", "John", "Laura", "Peter", "Sofia", "Thomas", "Emma", "David",
    "Julia", "Paul", "Nina", "Mark", "Clara", "Daniel", "Eva", "George", "Alice", "Simon", "Helen", "Oscar",
    "Irene", "Victor", "Grace", "Samuel", "Rosa", "Henry", "Lucia", "Frank", "Marta", "Arthur", "Olga",
    "Walter", "Vera", "Louis", "Diana", "Hugo", "Elena", "Karl", "Ingrid", "Pedro", "Carmen", "Ivan",
    "Natasha", "Kenji", "Yuki", "Raj", "Priya", "Ali", "Leila", "Zoë", "René", "José", "Łukasz",
];

const SURNAME_STARTS: &[&str] = &[
    "Ander", "Bar", "Black", "Brook", "Car", "Chand", "Cole", "Dar", "Ed", "El", "Fair", "Ford", "Gar",
    "Glen", "Hart", "Haw", "Hol", "Jack", "John", "Kel", "Lang", "Lind", "Mac", "Mar", "Nor", "Oak", "Pem",
    "Rich", "Rob", "Rosen", "San", "Stan", "Ster", "Tan", "Thorn", "Wal", "West", "Whit", "Win", "York",
    "Müll", "Søren",
];

const SURNAME_ENDS: &[&str] = &[
    "son", "sen", "ley", "ton", "well", "man", "berg", "field", "ford", "wood", "er", "ham", "stein", "ski",
    "ez", "ini", "wick", "land", "worth", "by", "dale", "kins", "mann", "sson", "ova", "ard", "ell", "ard",
    "ing", "ström",
];

pub(crate) const TITLE_WORDS: &[&str] = &[
    "The", "Night", "Last", "House", "River", "Love", "Man", "Woman", "Dark", "City", "Day", "Secret",
    "King", "Return", "Blue", "Road", "Summer", "Winter", "Girl", "Boy", "Story", "Life", "Death", "Dream",
    "Lost", "Island", "Train", "Moon", "Star", "War", "Peace", "Garden", "Stranger", "Home", "Fire", "Water",
    "Wind", "Silence", "Voice", "Game", "Dance", "Music", "Heart", "Blood", "Gold", "Silver", "Queen",
    "Forest", "Mountain", "Sea", "Letter", "Shadow", "Light", "Mirror", "Door", "Window", "Bridge", "Tower",
    "Circus", "Harbor", "Desert", "Crown", "Promise", "Memory", "Journey", "Brother", "Sister", "Father",
    "Mother", "Child", "Morning", "Evening", "Café", "Amélie", "Ночь", "夜", "Straße", "Niño",
];

/// Appends `First Last`.
pub(crate) fn push_name(out: &mut Vec<u8>, random: &mut Random) {
    out.extend_from_slice(random.pick(FIRST_NAMES).as_bytes());
    out.push(b' ');
    out.extend_from_slice(random.pick(SURNAME_STARTS).as_bytes());
    out.extend_from_slice(random.pick(SURNAME_ENDS).as_bytes());
}

/// Appends a title of one to five words; one in a hundred has a word in double quotes.
pub(crate) fn push_title(out: &mut Vec<u8>, random: &mut Random) {
    let words = 1 + random.weighted(&[15, 30, 30, 15, 10]);
    let quoted_word = if random.percent(1) { random.below(words as u32) as usize } else { words };
    for word in 0..words {
        if word > 0 {
            out.push(b' ');
        }
        let quote: &[u8] = if word == quoted_word { b"\"" } else { b"" };
        out.extend_from_slice(quote);
        out.extend_from_slice(random.pick(TITLE_WORDS).as_bytes());
        out.extend_from_slice(quote);
    }
}
