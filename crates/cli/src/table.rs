//! Tables on the terminal.

/// Aligns `rows` under `head`; the first column to the left, the others to the right.
pub fn render(head: &[&str], rows: &[Vec<String>]) -> String {
    let mut widths: Vec<usize> = head.iter().map(|cell| cell.chars().count()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    let mut line = |cells: Vec<&str>| {
        let padded = cells.iter().zip(&widths).enumerate().map(|(at, (cell, width))| {
            let padding = " ".repeat(width.saturating_sub(cell.chars().count()));
            if at == 0 { format!("{cell}{padding}") } else { format!("{padding}{cell}") }
        });
        text.push_str(padded.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    };
    line(head.to_vec());
    let rules: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
    line(rules.iter().map(String::as_str).collect());
    for row in rows {
        line(row.iter().map(String::as_str).collect());
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn columns_line_up() {
        let rows = [vec!["a".to_owned(), "1.5".to_owned()], vec!["long name".to_owned(), "10".to_owned()]];
        let text = super::render(&["policy", "Mbit/s"], &rows);
        assert_eq!(text, "policy     Mbit/s\n---------  ------\na             1.5\nlong name      10\n");
    }
}
