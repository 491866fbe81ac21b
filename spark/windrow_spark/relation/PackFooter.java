package windrow;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.parquet.HadoopReadOptions;
import org.apache.parquet.ParquetReadOptions;
import org.apache.parquet.format.converter.ParquetMetadataConverter;
import org.apache.parquet.hadoop.metadata.BlockMetaData;
import org.apache.parquet.hadoop.metadata.ParquetMetadata;
import org.apache.parquet.schema.Type;

/** Where the rows of a pack lie, as its footer says. Runs on the driver only. */
final class PackFooter {
    // Far more than the footer of any pack has.
    private static final int MOST_BYTES = 64 << 20;
    private static final int TAIL_BYTES = 8;
    private static final byte[] MAGIC = {'P', 'A', 'R', '1'};
    // Mostly the whole footer, in one request.
    private static final int FIRST_BYTES = 256 << 10;
    // As in `seals.py`.
    private static final byte[] MARK = "windrow.pack\u0018`".getBytes(StandardCharsets.ISO_8859_1);
    private static final int ID_DIGITS = 32;
    private static final int SEAL_DIGITS = 64;

    /** For each row group, its first row and its first byte; then the number of rows. */
    final long[] firstRows;
    final long[] begins;
    /** For each row group, the byte after its last. */
    final long[] ends;
    /** The pack's id and its seal, and their first byte in the file. */
    final String seal;
    final long sealAt;
    private final String state;

    private PackFooter(List blocks, long end, String seal, long sealAt, String state)
            throws IOException {
        int count = blocks.size();
        this.seal = seal;
        this.sealAt = sealAt;
        this.state = state;
        this.firstRows = new long[count + 1];
        this.begins = new long[count];
        this.ends = new long[count];
        long before = 0;
        for (int i = 0; i < count; i++) {
            BlockMetaData block = (BlockMetaData) blocks.get(i);
            firstRows[i + 1] = firstRows[i] + block.getRowCount();
            begins[i] = block.getStartingPos();
            ends[i] = begins[i] + block.getCompressedSize();
            // Spark chooses row groups by bytes, and all that follows goes by ascending numbers.
            boolean isNext = firstRows[i + 1] > firstRows[i] && begins[i] >= before
                && ends[i] > begins[i] && ends[i] <= end;
            if (!isNext) throw new IOException("its row groups are damaged");
            before = ends[i];
        }
    }

    /**
     * Reads the footer of a pack.
     *
     * @throws IOException It is none, or damaged.
     */
    static PackFooter of(FileSystem system, FileStatus status, Configuration settings)
            throws IOException, GeneralSecurityException {
        byte[] footer = read(system, status);
        int seal = seal(footer);
        if (seal < 0) throw new IOException("its footer is damaged, or of an earlier version");
        ParquetReadOptions options = HadoopReadOptions.builder(settings).build();
        ParquetMetadata metadata = new ParquetMetadataConverter(options).readParquetMetadata(
            new ByteArrayInputStream(footer), ParquetMetadataConverter.NO_FILTER);
        if (!differInMoreThanCase(metadata)) {
            throw new IOException("names of its columns differ by case alone");
        }
        long begin = status.getLen() - TAIL_BYTES - footer.length;
        String digits = new String(
            footer, seal, ID_DIGITS + SEAL_DIGITS, StandardCharsets.ISO_8859_1);
        return new PackFooter(metadata.getBlocks(), begin, digits, begin + seal, state(status));
    }

    int groups() {
        return begins.length;
    }

    long rows() {
        return firstRows[groups()];
    }

    /** Tells whether the file seems to be the one of which this is the footer. */
    boolean isOf(FileStatus status) {
        return state.equals(state(status));
    }

    private static String state(FileStatus status) {
        return status.getLen() + " " + status.getModificationTime();
    }

    private static byte[] read(FileSystem system, FileStatus status) throws IOException {
        long size = status.getLen();
        FSDataInputStream file = system.open(status.getPath());
        try {
            byte[] end = new byte[(int) Math.min(size, FIRST_BYTES)];
            file.readFully(size - end.length, end);
            int at = end.length - TAIL_BYTES;
            if (at < 0) throw new IOException("it is too short");
            int length = 0;
            for (int i = 3; i >= 0; i--) length = length << 8 | end[at + i] & 255;
            for (int i = 0; i < MAGIC.length; i++) {
                if (end[at + 4 + i] != MAGIC[i]) throw new IOException("its end is damaged");
            }
            if (length < 0 || length > size - TAIL_BYTES) throw new IOException("its end is damaged");
            if (length > MOST_BYTES) {
                throw new IOException("its footer has " + length + " bytes, of at most " + MOST_BYTES);
            }
            if (length <= at) return Arrays.copyOfRange(end, at - length, at);
            byte[] footer = new byte[length];
            file.readFully(size - TAIL_BYTES - length, footer);
            return footer;
        } finally {
            file.close();
        }
    }

    /** Returns where a footer has its id and seal; -1 unless it is as it was when it was written. */
    private static int seal(byte[] footer) throws GeneralSecurityException {
        int at = 0;
        int last = footer.length - MARK.length - ID_DIGITS - SEAL_DIGITS;
        while (at <= last && !isMark(footer, at)) at++;
        if (at > last) return -1;
        int begin = at + MARK.length + ID_DIGITS;
        int end = begin + SEAL_DIGITS;
        byte[] blank = new byte[SEAL_DIGITS];
        Arrays.fill(blank, (byte) '0');
        MessageDigest digest = MessageDigest.getInstance("SHA-256");
        digest.update(footer, 0, begin);
        digest.update(blank);
        digest.update(footer, end, footer.length - end);
        byte[] expected = digest.digest();
        for (int i = 0; i < expected.length; i++) {
            if (footer[begin + 2 * i] != Character.forDigit(expected[i] >> 4 & 15, 16)) return -1;
            if (footer[begin + 2 * i + 1] != Character.forDigit(expected[i] & 15, 16)) return -1;
        }
        return at + MARK.length;
    }

    private static boolean isMark(byte[] footer, int at) {
        for (int i = 0; i < MARK.length; i++) if (footer[at + i] != MARK[i]) return false;
        return true;
    }

    /** Spark takes columns whose names differ only by case for the same. */
    private static boolean differInMoreThanCase(ParquetMetadata metadata) {
        List columns = metadata.getFileMetaData().getSchema().getFields();
        Set names = new HashSet();
        for (int i = 0; i < columns.size(); i++) {
            names.add(((Type) columns.get(i)).getName().toLowerCase(Locale.ROOT));
        }
        return names.size() == columns.size();
    }
}
